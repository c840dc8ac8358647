#ifdef GGML_CUSTOM_KERNELS
    if (strcmp(name, "ggml_custom_kernels_register") == 0) {
        return (void *)ggml_custom_kernels_register;
    }
#endif
