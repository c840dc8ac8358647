// GCN with dot4: Radeon VII, Instinct MI50 and MI60. No matrix instructions.
#pragma once

#include "arch.h"
#include "dot4.h"
#include "dot4_step.h"

namespace wavesmith::arch {

struct Gcn {
    static constexpr Family       family    = Family::gcn;
    static constexpr uint32_t     wave_size = 64;
    static constexpr uint32_t     lds_bytes = 64 * 1024;
    static constexpr const char * targets[] = { "gfx906" };

    template <class Simt> WAVESMITH_DEVICE static int32_t dot4(const Simt & simt, int32_t a, int32_t b, int32_t accumulator) {
        return signed_dot4(simt, a, b, accumulator);
    }

    template <int parts> using Int8Step = Dot4Step<Gcn>;
};

}  // namespace wavesmith::arch
