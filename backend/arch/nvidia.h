// NVIDIA GPUs of compute capability 8.0 and later: the `cuda` target.
#pragma once

#include "arch.h"
#include "dot4.h"
#include "mma_sync.h"

namespace wavesmith::arch {

struct Nvidia {
    static constexpr Family       family    = Family::cuda;
    static constexpr uint32_t     wave_size = 32;
    static constexpr uint32_t     lds_bytes = 99 * 1024;  // sm_86 and sm_89 have the least of those that can be built for
    static constexpr const char * targets[] = { "cuda" };

    template <class Simt> WAVESMITH_DEVICE static int32_t dot4(const Simt & simt, int32_t a, int32_t b, int32_t accumulator) {
        return signed_dot4(simt, a, b, accumulator);
    }

    template <int parts> using Int8Step = MmaSyncStep;
};

}  // namespace wavesmith::arch
