// The user's switches, read once per process (tools/wavesmith/settings.py lists and explains them).
#pragma once

#include <stdint.h>

#include <string>

#include "../arch/arch.h"

namespace wavesmith {

// Kernels by the names of WAVESMITH_KERNELS.
enum class Kernel : uint32_t { mmq, mmvq, gemm, fattn };

constexpr int kernel_count = 4;

const char * kernel_name(Kernel kernel);

struct Environment {
    bool        enabled      = true;           // WAVESMITH; false also where another variable cannot be used
    uint32_t    kernel_mask  = 0;              // WAVESMITH_KERNELS, bit per Kernel
    Family      family       = Family::rdna3;  // WAVESMITH_HOST_FAMILY
    std::string ledger_path;                   // WAVESMITH_LEDGER, "-" for stderr, empty for none

    bool allows(Kernel kernel) const { return (kernel_mask >> static_cast<uint32_t>(kernel)) & 1; }
};

// The process's environment. The first call reads it, and prints one line for each setting that cannot be used.
const Environment & environment();

}  // namespace wavesmith
