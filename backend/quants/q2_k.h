// Q2_K: 256 weights in 16 groups of 16, each with a 4-bit scale and a 4-bit minimum; 2-bit weights.
// Bytes: 16 scale/minimum nibbles, 64 weights (byte l of a 32-byte half holds weights l, l+32, l+64, l+96), f16 d, f16 dmin.
//
// A weight times its scale is at most 3 * 15, so the scale is folded into the integer, and 64 weights share one sum. As in
// stock's layout d2s6, 64 activations share a scale.
#pragma once

#include "../arch/byte_permute.h"
#include "support/blocks_of_256.h"

namespace wavesmith::quants {

struct Q2_K : BlocksOf256<Q2_K> {
    static constexpr const char * name = "q2_K";
    static constexpr int ggml_type     = 10;
    static constexpr int block_values  = 256;
    static constexpr int block_bytes   = 84;
    static constexpr int alignment     = 4;
    static constexpr int step_values   = 64;
    static constexpr int parts         = 1;
    static constexpr int chunks        = 2;
    static constexpr int pieces        = 4;
    static constexpr int minimums      = 4;
    static constexpr int scale_steps   = 1;

    struct Chunk {
        Bytes16 crumbs;
        Bytes8  scales;  // of the half's eight groups
    };
    struct Scales {
        uint32_t minimums;  // high nibbles: of four groups
        uint32_t dm;
    };

    WAVESMITH_DEVICE static constexpr int offset(int chunk, int piece) { return 32 * piece + 16 * chunk; }

    template <class Simt> WAVESMITH_DEVICE static Chunk load(const Simt & simt, const uint8_t * row, int32_t k, int chunk) {
        const uint8_t * bytes = block(row, k);
        return { load16<alignment>(simt, bytes + 16 + 32 * half(k) + 16 * chunk), load8<alignment>(simt, bytes + 8 * half(k)) };
    }
    WAVESMITH_DEVICE static void unpack(const Chunk & chunk, int index, Bytes16 (&piece)[pieces]) {
        WAVESMITH_UNROLL
        for (int quarter = 0; quarter < 4; ++quarter) {
            const uint32_t scale = byte_of(chunk.scales.word[quarter / 2], quarter % 2 * 2 + index) & 0xF;
            piece[quarter]       = looked_up(field(chunk.crumbs, 2 * quarter, 0x03), 0x03020100u * scale);
        }
    }

    template <class Simt> WAVESMITH_DEVICE static Scales load_scales(const Simt & simt, const uint8_t * row, int32_t k, int unit) {
        return { load4<alignment>(simt, block(row, k) + 8 * half(k) + 4 * unit), load4<alignment>(simt, block(row, k) + 80) };
    }
    WAVESMITH_DEVICE static StepScale step_scale(const Scales & scales, int32_t, int, int) {
        const float dmin = half_to_float(uint16_t(scales.dm >> 16));
        StepScale   step = { { half_to_float(uint16_t(scales.dm)) }, {} };
        WAVESMITH_UNROLL
        for (int i = 0; i < minimums; ++i) {
            step.minimum[i] = dmin * float(byte_of(scales.minimums, i) >> 4);
        }
        return step;
    }

  private:
    // Each byte (0 … 3) as that byte of `products`.
    WAVESMITH_DEVICE static Bytes16 looked_up(Bytes16 bytes, uint32_t products) {
        WAVESMITH_UNROLL
        for (int i = 0; i < 4; ++i) {
            bytes.word[i] = arch::byte_permute(0, products, bytes.word[i]);
        }
        return bytes;
    }
};

}  // namespace wavesmith::quants
