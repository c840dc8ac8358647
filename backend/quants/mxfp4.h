// MXFP4: 32 weights, a power of two as scale (E8M0: its exponent plus 127), 4-bit floats in Q4_0's order.
#pragma once

#include "support/blocks_of_32.h"
#include "support/fp4_table.h"

namespace wavesmith::quants {

struct MXFP4 : BlocksOf32<MXFP4> {
    static constexpr const char * name = "mxfp4";
    static constexpr int ggml_type     = 39;
    static constexpr int block_bytes   = 17;
    static constexpr int alignment     = 1;
    static constexpr int minimums      = 0;
    static constexpr bool scale_last   = true;  // scales reach from 2^-128 to 2^127

    struct Chunk {
        Bytes16 codes;
    };
    struct Scales {
        uint32_t exponent;
    };

    template <class Simt> WAVESMITH_DEVICE static Chunk load(const Simt & simt, const uint8_t * row, int32_t k, int chunk) {
        return { load16<alignment>(simt, block(row, k, chunk) + 1) };
    }
    WAVESMITH_DEVICE static void unpack(const Chunk & chunk, int, Bytes16 (&piece)[pieces]) {
        piece[0] = fp4_values(chunk.codes, 0);
        piece[1] = fp4_values(chunk.codes, 1);
    }

    template <class Simt> WAVESMITH_DEVICE static Scales load_scales(const Simt & simt, const uint8_t * row, int32_t k, int unit) {
        return { load1(simt, block(row, k, unit)) };
    }
    // 2^(exponent - 128), the halved scale; the two smallest are subnormal. An exponent of 255 is a number as any other.
    WAVESMITH_DEVICE static StepScale step_scale(const Scales & scales, int32_t, int, int) {
        return { { bits_to_float(scales.exponent < 2 ? 0x00200000u << scales.exponent : (scales.exponent - 1) << 23) }, {} };
    }
};

}  // namespace wavesmith::quants
