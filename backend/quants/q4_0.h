// Q4_0: 32 weights, f16 scale, 4-bit weights less 8. Byte j holds weight j (low nibble) and j + 16 (high).
#pragma once

#include "support/blocks_of_32.h"

namespace wavesmith::quants {

struct Q4_0 : BlocksOf32<Q4_0> {
    static constexpr const char * name = "q4_0";
    static constexpr int ggml_type     = 2;
    static constexpr int block_values  = 32;
    static constexpr int block_bytes   = 18;
    static constexpr int alignment     = 2;
    static constexpr int minimums      = 0;

    struct Chunk {
        Bytes16 nibbles;
    };
    struct Scales {
        uint32_t d;
    };

    template <class Simt> WAVESMITH_DEVICE static Chunk load(const Simt & simt, const uint8_t * row, int32_t k, int chunk) {
        return { load16<alignment>(simt, block(row, k, chunk) + 2) };
    }
    WAVESMITH_DEVICE static void unpack(const Chunk & chunk, int, Bytes16 (&piece)[pieces]) {
        piece[0] = minus(nibbles(chunk.nibbles, 0), 8);
        piece[1] = minus(nibbles(chunk.nibbles, 1), 8);
    }

    template <class Simt> WAVESMITH_DEVICE static Scales load_scales(const Simt & simt, const uint8_t * row, int32_t k, int unit) {
        return { load2(simt, block(row, k, unit)) };
    }
    WAVESMITH_DEVICE static StepScale step_scale(const Scales & scales, int32_t, int, int) { return { { half_to_float(uint16_t(scales.d)) }, {} }; }
};

}  // namespace wavesmith::quants
