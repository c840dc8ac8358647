#include <hip/hip_runtime.h>

#include "../device_kernel.h"

namespace wavesmith::device {

static const char * described(hipError_t error) {
    if (error == hipSuccess) {
        return nullptr;
    }
    (void) hipGetLastError();
    return hipGetErrorString(error);
}

const char * prepare(const void * function, uint32_t, int) {
    hipFuncAttributes attributes;
    return described(hipFuncGetAttributes(&attributes, function));
}

const char * launch(const void * function, Grid grid, uint32_t threads, uint32_t dynamic_lds_bytes, void * stream, void * arguments) {
    void * parameters[] = { arguments };
    return described(
        hipLaunchKernel(function, dim3(grid.x, grid.y, grid.z), dim3(threads), parameters, dynamic_lds_bytes, static_cast<hipStream_t>(stream)));
}

}  // namespace wavesmith::device
