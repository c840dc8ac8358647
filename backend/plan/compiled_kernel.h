// A kernel as the platform of this build runs it: CompiledKernel<Arguments>, made by compiled_kernel<Kernel>(). WAVESMITH_HIP
// and WAVESMITH_CUDA are set by the build of a module for those platforms, WAVESMITH_DEVICE_ON_HOST by tests of what drives a
// GPU; else it is the host's.
#pragma once

#if defined(WAVESMITH_HIP)
#    include "../platform/hip/launch.h"
#elif defined(WAVESMITH_CUDA)
#    include "../platform/cuda/launch.h"
#elif defined(WAVESMITH_DEVICE_ON_HOST)
#    include "../platform/host/device_launch.h"
#else
#    include "host_kernel.h"
#endif

#include "../arch/arch.h"

#if !defined(WAVESMITH_FAMILIES)
#    define WAVESMITH_FAMILIES 0xFFFFFFFFu
#endif

namespace wavesmith {

// Families whose kernels are in this build, a bit for each.
constexpr bool family_is_compiled(Family family) {
    return (WAVESMITH_FAMILIES >> int(family)) & 1;
}

#if defined(WAVESMITH_HIP) || defined(WAVESMITH_CUDA) || defined(WAVESMITH_DEVICE_ON_HOST)

template <class Arguments> using CompiledKernel = device::DeviceKernel<Arguments>;

// A kernel of a family that is not compiled can be asked for its sizes alone.
template <class Kernel> CompiledKernel<typename Kernel::Arguments> compiled_kernel() {
    if constexpr (family_is_compiled(Kernel::Arch::family)) {
        return device::device_kernel<Kernel>();
    } else {
        return { Kernel::threads, Kernel::lds_bytes, 0, nullptr };
    }
}

#else

template <class Arguments> using CompiledKernel = HostKernel<Arguments>;

template <class Kernel> CompiledKernel<typename Kernel::Arguments> compiled_kernel() {
    return host_kernel<Kernel>();
}

#endif

}  // namespace wavesmith
