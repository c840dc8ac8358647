// Q4_K: 256 weights in 8 groups of 32, each with a 6-bit scale and a 6-bit minimum; 4-bit weights.
// Bytes: f16 d, f16 dmin, 12 bytes of scales, 128 weights (byte l of a 32-byte quarter holds weights l and l + 32).
#pragma once

#include "support/blocks_of_256.h"
#include "support/k_scales.h"

namespace wavesmith::quants {

struct Q4_K : BlocksOf256<Q4_K> {
    static constexpr const char * name = "q4_K";
    static constexpr int ggml_type     = 12;
    static constexpr int block_values  = 256;
    static constexpr int block_bytes   = 144;
    static constexpr int alignment     = 16;
    static constexpr int step_values   = 32;
    static constexpr int parts         = 1;
    static constexpr int chunks        = 4;
    static constexpr int pieces        = 2;
    static constexpr int minimums      = 1;
    static constexpr int scale_steps   = 2;

    struct Chunk {
        Bytes16 nibbles;
    };
    using Scales = KScales;

    WAVESMITH_DEVICE static constexpr int offset(int chunk, int piece) { return 64 * (chunk / 2) + 32 * piece + 16 * (chunk % 2); }

    template <class Simt> WAVESMITH_DEVICE static Chunk load(const Simt & simt, const uint8_t * row, int32_t k, int chunk) {
        return { load16<alignment>(simt, block(row, k) + 16 + 64 * half(k) + 16 * chunk) };
    }
    WAVESMITH_DEVICE static void unpack(const Chunk & chunk, int, Bytes16 (&piece)[pieces]) {
        piece[0] = nibbles(chunk.nibbles, 0);
        piece[1] = nibbles(chunk.nibbles, 1);
    }

    template <class Simt> WAVESMITH_DEVICE static Scales load_scales(const Simt & simt, const uint8_t * row, int32_t k, int) {
        return { load16<alignment>(simt, block(row, k)) };
    }
    WAVESMITH_DEVICE static StepScale step_scale(const Scales & scales, int32_t k, int unit, int step) {
        return k_step_scale(scales, 4 * half(k) + 2 * unit + step);
    }
};

}  // namespace wavesmith::quants
