#if defined(GGML_CUSTOM_KERNELS) && !defined(GGML_BACKEND_DL)
#define GGML_CUSTOM_KERNELS_REGISTER(module_name)                  \
        if (!ggml_custom_kernels_is_replaced(#module_name)) {      \
            register_backend(ggml_backend_##module_name##_reg());  \
        }
        GGML_CUSTOM_KERNELS_HOST(GGML_CUSTOM_KERNELS_REGISTER)
#undef GGML_CUSTOM_KERNELS_REGISTER
#endif
