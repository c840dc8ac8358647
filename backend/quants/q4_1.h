// Q4_1: 32 weights, f16 scale and f16 offset, 4-bit weights. Byte j holds weight j (low nibble) and j + 16 (high).
#pragma once

#include "support/blocks_of_32.h"

namespace wavesmith::quants {

struct Q4_1 : BlocksOf32<Q4_1> {
    static constexpr const char * name = "q4_1";
    static constexpr int ggml_type     = 3;
    static constexpr int block_values  = 32;
    static constexpr int block_bytes   = 20;
    static constexpr int alignment     = 4;
    static constexpr int minimums      = 1;

    struct Chunk {
        Bytes16 nibbles;
    };
    struct Scales {
        uint32_t dm;
    };

    template <class Simt> WAVESMITH_DEVICE static Chunk load(const Simt & simt, const uint8_t * row, int32_t k, int chunk) {
        return { load16<alignment>(simt, block(row, k, chunk) + 4) };
    }
    WAVESMITH_DEVICE static void unpack(const Chunk & chunk, int, Bytes16 (&piece)[pieces]) {
        piece[0] = nibbles(chunk.nibbles, 0);
        piece[1] = nibbles(chunk.nibbles, 1);
    }

    template <class Simt> WAVESMITH_DEVICE static Scales load_scales(const Simt & simt, const uint8_t * row, int32_t k, int unit) {
        return { load4<alignment>(simt, block(row, k, unit)) };
    }
    WAVESMITH_DEVICE static StepScale step_scale(const Scales & scales, int32_t, int, int) {
        return { { half_to_float(uint16_t(scales.dm)) }, { -half_to_float(uint16_t(scales.dm >> 16)) } };
    }
};

}  // namespace wavesmith::quants
