// Kernels as HIP functions, launched through the runtime. A build may hold several targets: each is compiled with every
// family's kernels, and those of other families than its own are empty there and never launched.
#pragma once

#include <hip/hip_runtime.h>

#include "../../arch/arch.h"
#include "../device_kernel.h"
#include "simt.h"

namespace wavesmith::device {

// Whether the target of this compilation belongs to a family. No target: the compilation for the CPU.
constexpr bool compiles_for(Family family) {
#if defined(__gfx906__)
    return family == Family::gcn;
#elif defined(__gfx90a__)
    return family == Family::cdna2;
#elif defined(__gfx942__)
    return family == Family::cdna3;
#elif defined(__gfx950__)
    return family == Family::cdna4;
#elif defined(__gfx1030__) || defined(__gfx1031__) || defined(__gfx1032__) || defined(__gfx1034__) || defined(__gfx1035__) || defined(__gfx1036__)
    return family == Family::rdna2;
#elif defined(__gfx1100__) || defined(__gfx1101__) || defined(__gfx1102__) || defined(__gfx1103__)
    return family == Family::rdna3;
#elif defined(__gfx1150__) || defined(__gfx1151__) || defined(__gfx1152__) || defined(__gfx1153__)
    return family == Family::rdna3_5;
#elif defined(__gfx1200__) || defined(__gfx1201__)
    return family == Family::rdna4;
#else
    return (void) family, false;
#endif
}

template <class Kernel>
__attribute__((global)) __attribute__((amdgpu_flat_work_group_size(Kernel::threads, Kernel::threads))) void kernel_entry(
    const typename Kernel::Arguments arguments) {
    if constexpr (compiles_for(Kernel::Arch::family)) {
        Kernel::run(hip::DeviceSimt<typename Kernel::Arch, Kernel::lds_bytes>(), arguments);
    }
}

template <class Kernel> DeviceKernel<typename Kernel::Arguments> device_kernel() {
    return { Kernel::threads, Kernel::lds_bytes, 0, reinterpret_cast<const void *>(kernel_entry<Kernel>) };
}

}  // namespace wavesmith::device
