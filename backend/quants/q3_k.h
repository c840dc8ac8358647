// Q3_K: 256 weights in 16 groups of 16, each with a 6-bit scale less 32; 3-bit weights less 4.
// Bytes: 32 high-bit masks (bit 4*half + quarter of byte l), 64 low bits laid out as in Q2_K, 12 bytes of scales, f16 d.
//
// A weight times its scale lies in -124 … 128: negated it is a signed byte. So the integer is (4 - weight) * (scale - 32),
// the scale of a step is -d, and 32 weights share one sum.
#pragma once

#include "../arch/byte_permute.h"
#include "support/blocks_of_256.h"

namespace wavesmith::quants {

struct Q3_K : BlocksOf256<Q3_K> {
    static constexpr const char * name = "q3_K";
    static constexpr int ggml_type     = 11;
    static constexpr int block_values  = 256;
    static constexpr int block_bytes   = 110;
    static constexpr int alignment     = 2;
    static constexpr int step_values   = 32;
    static constexpr int parts         = 1;
    static constexpr int chunks        = 2;
    static constexpr int pieces        = 4;
    static constexpr int minimums      = 0;
    static constexpr int scale_steps   = 2;

    struct Chunk {
        Bytes16  crumbs;
        Bytes16  high_bits;  // bit q: quarter q
        Bytes8   low_scales;
        uint32_t high_scales;
        int      half;
    };
    struct Scales {
        uint32_t d;
    };

    WAVESMITH_DEVICE static constexpr int offset(int chunk, int piece) { return 32 * piece + 16 * chunk; }

    template <class Simt> WAVESMITH_DEVICE static Chunk load(const Simt & simt, const uint8_t * row, int32_t k, int chunk) {
        const uint8_t * bytes = block(row, k);
        return { load16<alignment>(simt, bytes + 32 + 32 * half(k) + 16 * chunk), field(load16<alignment>(simt, bytes + 16 * chunk), 4 * half(k), 0x0F),
                 load8<alignment>(simt, bytes + 96), load4<alignment>(simt, bytes + 104), half(k) };
    }
    WAVESMITH_DEVICE static void unpack(const Chunk & chunk, int index, Bytes16 (&piece)[pieces]) {
        WAVESMITH_UNROLL
        for (int quarter = 0; quarter < 4; ++quarter) {
            const Bytes16 weight = with_field(field(chunk.crumbs, 2 * quarter, 0x03), chunk.high_bits, quarter, 1, 2);
            piece[quarter]       = scaled(weight, scale(chunk, 2 * quarter + index));
        }
    }

    template <class Simt> WAVESMITH_DEVICE static Scales load_scales(const Simt & simt, const uint8_t * row, int32_t k, int) {
        return { load2(simt, block(row, k) + 108) };
    }
    WAVESMITH_DEVICE static StepScale step_scale(const Scales & scales, int32_t, int, int) { return { { -half_to_float(uint16_t(scales.d)) }, {} }; }

  private:
    // Scale 0 … 63 of a group of the half. Bytes 0-7 hold the low nibbles of groups i and i + 8, bytes 8-11 the high pairs of
    // bits of groups i, i+4, i+8, i+12.
    WAVESMITH_DEVICE static uint32_t scale(const Chunk & chunk, int group) {
        const uint32_t low  = byte_of(chunk.low_scales.word[group / 4], group % 4) >> (4 * chunk.half);
        const uint32_t high = byte_of(chunk.high_scales, group % 4) >> (4 * chunk.half + group / 4 * 2);
        return (low & 0xF) | ((high & 3) << 4);
    }

    // (4 - weight) * (scale - 32) for weights 0 … 7, looked up in the eight products of this scale.
    WAVESMITH_DEVICE static Bytes16 scaled(Bytes16 weight, uint32_t scale) {
        const uint32_t factor   = (scale - 32) & 0xFF;
        const uint32_t negative = (32 - scale) & 0xFF;
        const uint32_t low      = byte_products(0x00020004u, 0x00010003u, factor);    // 4, 3, 2, 1 times
        const uint32_t high     = byte_products(0x00020000u, 0x00030001u, negative);  // 0, 1, 2, 3 times
        WAVESMITH_UNROLL
        for (int i = 0; i < 4; ++i) {
            weight.word[i] = arch::byte_permute(high, low, weight.word[i]);
        }
        return weight;
    }

    // Four products modulo 256: bytes 0 and 2 from `even`, 1 and 3 from `odd` (two small numbers each, 16 bits apart).
    WAVESMITH_DEVICE static uint32_t byte_products(uint32_t even, uint32_t odd, uint32_t factor) {
        return ((even * factor) & 0x00FF00FFu) | ((odd * factor) & 0x00FF00FFu) << 8;
    }
};

}  // namespace wavesmith::quants
