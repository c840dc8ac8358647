// Q5_K: 256 weights in 8 groups of 32, each with a 6-bit scale and a 6-bit minimum; 5-bit weights.
// Bytes: f16 d, f16 dmin, 12 bytes of scales, 32 bytes of fifth bits (bit g of byte l belongs to group g), 128 nibbles as in Q4_K.
#pragma once

#include "support/blocks_of_256.h"
#include "support/k_scales.h"

namespace wavesmith::quants {

struct Q5_K : BlocksOf256<Q5_K> {
    static constexpr const char * name = "q5_K";
    static constexpr int ggml_type     = 13;
    static constexpr int block_values  = 256;
    static constexpr int block_bytes   = 176;
    static constexpr int alignment     = 16;
    static constexpr int step_values   = 32;
    static constexpr int parts         = 1;
    static constexpr int chunks        = 4;
    static constexpr int pieces        = 2;
    static constexpr int minimums      = 1;
    static constexpr int scale_steps   = 2;

    struct Chunk {
        Bytes16 nibbles;
        Bytes16 fifth_bits;  // bit 0: group of piece 0, bit 1: of piece 1
    };
    using Scales = KScales;

    WAVESMITH_DEVICE static constexpr int offset(int chunk, int piece) { return 64 * (chunk / 2) + 32 * piece + 16 * (chunk % 2); }

    template <class Simt> WAVESMITH_DEVICE static Chunk load(const Simt & simt, const uint8_t * row, int32_t k, int chunk) {
        const uint8_t * bytes = block(row, k);
        const Bytes16   bits  = load16<alignment>(simt, bytes + 16 + 16 * (chunk % 2));
        return { load16<alignment>(simt, bytes + 48 + 64 * half(k) + 16 * chunk), field(bits, 4 * half(k) + chunk / 2 * 2, 0x03) };
    }
    WAVESMITH_DEVICE static void unpack(const Chunk & chunk, int, Bytes16 (&piece)[pieces]) {
        piece[0] = with_field(nibbles(chunk.nibbles, 0), chunk.fifth_bits, 0, 1, 4);
        piece[1] = with_field(nibbles(chunk.nibbles, 1), chunk.fifth_bits, 1, 1, 4);
    }

    template <class Simt> WAVESMITH_DEVICE static Scales load_scales(const Simt & simt, const uint8_t * row, int32_t k, int) {
        return { load16<alignment>(simt, block(row, k)) };
    }
    WAVESMITH_DEVICE static StepScale step_scale(const Scales & scales, int32_t k, int unit, int step) {
        return k_step_scale(scales, 4 * half(k) + 2 * unit + step);
    }
};

}  // namespace wavesmith::quants
