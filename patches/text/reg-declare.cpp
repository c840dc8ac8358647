#ifdef GGML_CUSTOM_KERNELS
#include "ggml-custom-kernels-list.h"

// GGML_BACKEND_PATH may name another build of a configured module, which then takes its place.
[[maybe_unused]] static bool ggml_custom_kernels_is_replaced(const std::string & name) {
    const char * path = std::getenv("GGML_BACKEND_PATH");
    if (path == nullptr) {
        return false;
    }
    const std::string stem = path_str(fs::path(path).stem());
    return stem == "libggml-" + name || stem == "ggml-" + name;
}

#ifndef GGML_BACKEND_DL
#define GGML_CUSTOM_KERNELS_DECLARE(module_name) extern "C" ggml_backend_reg_t ggml_backend_##module_name##_reg(void);
GGML_CUSTOM_KERNELS_HOST(GGML_CUSTOM_KERNELS_DECLARE)
#undef GGML_CUSTOM_KERNELS_DECLARE
#endif
#endif

