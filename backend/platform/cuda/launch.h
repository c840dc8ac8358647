// Kernels as CUDA functions, launched through the runtime. They are empty for architectures without the int8 instructions of
// arch/nvidia.h, where the module takes nothing.
#pragma once

#include "../device_kernel.h"
#include "simt.h"

namespace wavesmith::device {

template <class Kernel>
__global__ void __launch_bounds__(Kernel::threads) kernel_entry(const __grid_constant__ typename Kernel::Arguments arguments) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    Kernel::run(cuda::DeviceSimt<typename Kernel::Arch>(), arguments);
#endif
}

template <class Kernel> DeviceKernel<typename Kernel::Arguments> device_kernel() {
    return { Kernel::threads, Kernel::lds_bytes, Kernel::lds_bytes, reinterpret_cast<const void *>(kernel_entry<Kernel>) };
}

}  // namespace wavesmith::device
