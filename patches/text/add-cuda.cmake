    ggml_custom_kernels_add(cuda)
