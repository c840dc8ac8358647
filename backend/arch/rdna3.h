// RDNA3: RX 7000.
#pragma once

#include "arch.h"
#include "dot4.h"
#include "matrix_step.h"
#include "wmma.h"

namespace wavesmith::arch {

struct Rdna3 {
    static constexpr Family       family    = Family::rdna3;
    static constexpr uint32_t     wave_size = 32;
    static constexpr uint32_t     lds_bytes = 64 * 1024;
    static constexpr const char * targets[] = { "gfx1100", "gfx1101", "gfx1102", "gfx1103" };

    template <class Simt> WAVESMITH_DEVICE static int32_t dot4(const Simt & simt, int32_t a, int32_t b, int32_t accumulator) {
        return mixed_sign_dot4(simt, a, b, accumulator);
    }

    template <int parts> using Int8Step = MatrixStep<wmma::I32_16x16x16_Rdna3, true>;
};

}  // namespace wavesmith::arch
