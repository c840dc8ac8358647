// Q3_K: 256 weights in 16 groups of 16, each with a 6-bit scale less 32; 3-bit weights less 4.
// Bytes: 32 high-bit masks (bit 4*half + quarter of byte l), 64 low bits laid out as in Q2_K, 12 bytes of scales, f16 d.
#pragma once

#include "support/quant.h"

namespace wavesmith::quants {

struct Q3_K {
    static constexpr const char * name = "q3_K";
    static constexpr int  ggml_type    = 11;
    static constexpr int  block_values = 256;
    static constexpr int  block_bytes  = 110;
    static constexpr int  alignment    = 2;
    static constexpr int  group        = 16;
    static constexpr bool has_minimum  = false;

    template <class Simt> WAVESMITH_DEVICE static Bytes16 unpack(const Simt & simt, const uint8_t * block, int part) {
        const int half = part / 8, quarter = part % 8 / 2, column = 16 * (part % 2);
        const Bytes16 low  = field(load16<alignment>(simt, block + 32 + 32 * half + column), 2 * quarter, 0x03);
        const Bytes16 mask = load16<alignment>(simt, block + column);
        return minus(with_bit(low, mask, 4 * half + quarter, 2), 4);
    }

    // Bytes 0-7 hold the low nibbles of scales i and i + 8, bytes 8-11 the high pairs of bits of scales i, i+4, i+8, i+12.
    template <class Simt> WAVESMITH_DEVICE static Scale scale(const Simt & simt, const uint8_t * block, int index) {
        const uint8_t * scales = block + 96;
        const uint32_t  low    = (load8(simt, scales + index % 8) >> (4 * (index / 8))) & 0xF;
        const uint32_t  high   = (load8(simt, scales + 8 + index % 4) >> (2 * (index / 4))) & 0x3;
        return { load_half(simt, block + 108) * float(int(low | (high << 4)) - 32), 0.0f };
    }
};

}  // namespace wavesmith::quants
