// RDNA2: RX 6000. No matrix instructions.
#pragma once

#include "arch.h"
#include "dot4.h"
#include "dot4_step.h"

namespace wavesmith::arch {

struct Rdna2 {
    static constexpr Family       family    = Family::rdna2;
    static constexpr uint32_t     wave_size = 32;
    static constexpr uint32_t     lds_bytes = 64 * 1024;
    static constexpr const char * targets[] = { "gfx1030", "gfx1031", "gfx1032", "gfx1034", "gfx1035", "gfx1036" };

    template <class Simt> WAVESMITH_DEVICE static int32_t dot4(const Simt & simt, int32_t a, int32_t b, int32_t accumulator) {
        return signed_dot4(simt, a, b, accumulator);
    }

    template <int parts> using Int8Step = Dot4Step<Rdna2>;
};

}  // namespace wavesmith::arch
