// A stand-in for a GPU's runtime: kernels that are launched like on a device (platform/device_kernel.h) and run on the host
// platform before the launch returns. For tests of the code that drives a GPU.
#pragma once

#include "../device_kernel.h"
#include "launch.h"
#include "simt.h"

namespace wavesmith::device {

// What a DeviceKernel's `function` points to.
struct HostFunction {
    std::string (*run)(const host::Launch & launch, const void * arguments);
    uint32_t lds_bytes;
};

template <class Kernel> std::string run_on_host(const host::Launch & launch, const void * arguments) {
    return host::launch<Kernel, host::HostSimt<typename Kernel::Arch, false>>(launch, *static_cast<const typename Kernel::Arguments *>(arguments));
}

template <class Kernel> DeviceKernel<typename Kernel::Arguments> device_kernel() {
    static const HostFunction function = { run_on_host<Kernel>, Kernel::lds_bytes };
    return { Kernel::threads, Kernel::lds_bytes, 0, &function };
}

}  // namespace wavesmith::device
