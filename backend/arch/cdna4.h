// CDNA4: Instinct MI350.
#pragma once

#include "arch.h"
#include "dot4.h"
#include "matrix_step.h"
#include "mfma.h"
#include "select.h"

namespace wavesmith::arch {

struct Cdna4 {
    static constexpr Family       family    = Family::cdna4;
    static constexpr uint32_t     wave_size = 64;
    static constexpr uint32_t     lds_bytes = 160 * 1024;
    static constexpr const char * targets[] = { "gfx950" };

    template <class Simt> WAVESMITH_DEVICE static int32_t dot4(const Simt & simt, int32_t a, int32_t b, int32_t accumulator) {
        return signed_dot4(simt, a, b, accumulator);
    }

    template <int parts> using Int8Step = Select<parts == 1, MatrixStep<mfma::I32_32x32x32>, MatrixStep<mfma::I32_32x32x16>>;
};

}  // namespace wavesmith::arch
