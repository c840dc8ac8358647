// Q1_0: 128 weights, f16 scale, 1-bit weights: a set bit is 1, the others are -1.
#pragma once

#include "support/quant.h"

namespace wavesmith::quants {

struct Q1_0 : Defaults {
    static constexpr const char * name = "q1_0";
    static constexpr int ggml_type     = 41;
    static constexpr int block_values  = 128;
    static constexpr int block_bytes   = 18;
    static constexpr int alignment     = 2;
    static constexpr int parts         = 1;
    static constexpr int chunks        = 2;
    static constexpr int pieces        = 4;
    static constexpr int minimums      = 0;
    static constexpr int scale_steps   = 2;

    struct Chunk {
        Bytes8 bits;
    };
    struct Scales {
        uint32_t d;
    };

    WAVESMITH_DEVICE static constexpr int offset(int chunk, int piece) { return 64 * chunk + 16 * piece; }

    template <class Simt> WAVESMITH_DEVICE static Chunk load(const Simt & simt, const uint8_t * row, int32_t k, int chunk) {
        return { load8<alignment>(simt, block(row, k) + 2 + 8 * chunk) };
    }
    WAVESMITH_DEVICE static void unpack(const Chunk & chunk, int, Bytes16 (&piece)[pieces]) {
        WAVESMITH_UNROLL
        for (int p = 0; p < pieces; ++p) {
            WAVESMITH_UNROLL
            for (int i = 0; i < 4; ++i) {
                piece[p].word[i] = signs(chunk.bits.word[p / 2] >> (16 * (p % 2) + 4 * i));
            }
        }
    }

    template <class Simt> WAVESMITH_DEVICE static Scales load_scales(const Simt & simt, const uint8_t * row, int32_t k, int) {
        return { load2(simt, block(row, k)) };
    }
    WAVESMITH_DEVICE static StepScale step_scale(const Scales & scales, int32_t, int, int) { return { { half_to_float(uint16_t(scales.d)) }, {} }; }

  private:
    // Bits 0-3 as four bytes: 1 for a set bit, else -1.
    WAVESMITH_DEVICE static uint32_t signs(uint32_t bits) {
        const uint32_t clear = ((~bits & 0xF) * 0x00204081u) & 0x01010101u;
        return 0x01010101u | clear * 0xFFu;
    }

    WAVESMITH_DEVICE static const uint8_t * block(const uint8_t * row, int32_t k) { return row + k / 128 * block_bytes; }
};

}  // namespace wavesmith::quants
