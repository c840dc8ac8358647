#ifdef GGML_CUSTOM_KERNELS
#include "ggml-cuda/custom-kernels.cuh"
#endif
