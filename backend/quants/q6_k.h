// Q6_K: 256 weights in 16 groups of 16, each with a signed 8-bit scale; 6-bit weights less 32.
// Bytes: 128 low nibbles, 64 high pairs of bits, 16 scales, f16 d. In a half of 128 weights, quarter q takes nibble q / 2 of
// bytes 32 * (q % 2) … and bits 2q, 2q+1 of the 32 high bytes.
#pragma once

#include "support/blocks_of_256.h"

namespace wavesmith::quants {

struct Q6_K : BlocksOf256<Q6_K> {
    static constexpr const char * name = "q6_K";
    static constexpr int ggml_type     = 14;
    static constexpr int block_values  = 256;
    static constexpr int block_bytes   = 210;
    static constexpr int alignment     = 2;
    static constexpr int step_values   = 32;
    static constexpr int parts         = 2;
    static constexpr int chunks        = 2;
    static constexpr int pieces        = 4;
    static constexpr int minimums      = 0;
    static constexpr int scale_steps   = 2;

    struct Chunk {
        Bytes16 low[2];
        Bytes16 high;
    };
    struct Scales {
        uint32_t scales;  // of four groups
        uint32_t d;
    };

    WAVESMITH_DEVICE static constexpr int offset(int chunk, int piece) { return 32 * piece + 16 * chunk; }

    template <class Simt> WAVESMITH_DEVICE static Chunk load(const Simt & simt, const uint8_t * row, int32_t k, int chunk) {
        const uint8_t * low = block(row, k) + 64 * half(k) + 16 * chunk;
        return { { load16<alignment>(simt, low), load16<alignment>(simt, low + 32) },
                 load16<alignment>(simt, block(row, k) + 128 + 32 * half(k) + 16 * chunk) };
    }
    WAVESMITH_DEVICE static void unpack(const Chunk & chunk, int, Bytes16 (&piece)[pieces]) {
        WAVESMITH_UNROLL
        for (int quarter = 0; quarter < 4; ++quarter) {
            piece[quarter] = minus(with_field(nibbles(chunk.low[quarter % 2], quarter / 2), chunk.high, 2 * quarter, 3, 4), 32);
        }
    }

    template <class Simt> WAVESMITH_DEVICE static Scales load_scales(const Simt & simt, const uint8_t * row, int32_t k, int unit) {
        return { load4<alignment>(simt, block(row, k) + 192 + 8 * half(k) + 4 * unit), load2(simt, block(row, k) + 208) };
    }
    WAVESMITH_DEVICE static StepScale step_scale(const Scales & scales, int32_t, int, int step) {
        const float d = half_to_float(uint16_t(scales.d));
        return { { d * float(int8_t(byte_of(scales.scales, 2 * step))), d * float(int8_t(byte_of(scales.scales, 2 * step + 1))) }, {} };
    }
};

}  // namespace wavesmith::quants
