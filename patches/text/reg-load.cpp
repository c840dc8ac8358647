#if defined(GGML_CUSTOM_KERNELS) && defined(GGML_BACKEND_DL)
#define GGML_CUSTOM_KERNELS_LOAD(module_name)                                                                            \
    if (!ggml_custom_kernels_is_replaced(#module_name) && ggml_backend_reg_by_name(#module_name) == nullptr) {           \
        ggml_backend_load_best(#module_name, silent, dir_path);                                                          \
    }
    GGML_CUSTOM_KERNELS_HOST(GGML_CUSTOM_KERNELS_LOAD)
#undef GGML_CUSTOM_KERNELS_LOAD
#endif
