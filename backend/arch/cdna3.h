// CDNA3: Instinct MI300.
#pragma once

#include "arch.h"
#include "dot4.h"
#include "matrix_step.h"
#include "mfma.h"

namespace wavesmith::arch {

struct Cdna3 {
    static constexpr Family       family    = Family::cdna3;
    static constexpr uint32_t     wave_size = 64;
    static constexpr uint32_t     lds_bytes = 64 * 1024;
    static constexpr const char * targets[] = { "gfx942" };

    template <class Simt> WAVESMITH_DEVICE static int32_t dot4(const Simt & simt, int32_t a, int32_t b, int32_t accumulator) {
        return signed_dot4(simt, a, b, accumulator);
    }

    template <int parts> using Int8Step = MatrixStep<mfma::I32_32x32x16>;
};

}  // namespace wavesmith::arch
