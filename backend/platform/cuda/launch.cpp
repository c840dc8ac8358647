#include <cuda_runtime.h>

#include "../device_kernel.h"

namespace wavesmith::device {

static const char * described(cudaError_t error) {
    if (error == cudaSuccess) {
        return nullptr;
    }
    (void) cudaGetLastError();
    return cudaGetErrorString(error);
}

const char * prepare(const void * function, uint32_t dynamic_lds_bytes, int) {
    cudaFuncAttributes attributes;
    const char *       error = described(cudaFuncGetAttributes(&attributes, function));
    if (error != nullptr || uint32_t(attributes.maxDynamicSharedSizeBytes) >= dynamic_lds_bytes) {
        return error;
    }
    return described(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, int(dynamic_lds_bytes)));
}

const char * launch(const void * function, Grid grid, uint32_t threads, uint32_t dynamic_lds_bytes, void * stream, void * arguments) {
    void * parameters[] = { arguments };
    return described(cudaLaunchKernel(function, dim3(grid.x, grid.y, grid.z), dim3(threads), parameters, dynamic_lds_bytes,
                                      static_cast<cudaStream_t>(stream)));
}

}  // namespace wavesmith::device
