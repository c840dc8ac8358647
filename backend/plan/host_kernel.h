// A kernel compiled for the host platform, fast and checked, behind plain function pointers.
#pragma once

#include <string>

#include "../platform/host/launch.h"
#include "../platform/host/options.h"
#include "../platform/host/simt.h"

namespace wavesmith {

// `Arguments` is the kernel's argument struct; a run returns "" or the first fault.
template <class Arguments> struct HostKernel {
    using Run = std::string (*)(const host::Launch &, const Arguments &);

    uint32_t threads;
    uint32_t lds_bytes;
    Run      fast;
    Run      checked;

    std::string run(host::Launch launch, const Arguments & arguments) const {
        launch.threads   = threads;
        launch.lds_bytes = lds_bytes;
        return (host::checked_requested() ? checked : fast)(launch, arguments);
    }
};

template <class Kernel> constexpr HostKernel<typename Kernel::Arguments> host_kernel() {
    using Arch = typename Kernel::Arch;
    return { Kernel::threads, Kernel::lds_bytes, host::launch<Kernel, host::HostSimt<Arch, false>>,
             host::launch<Kernel, host::HostSimt<Arch, true>> };
}

}  // namespace wavesmith
