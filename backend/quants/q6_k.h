// Q6_K: 256 weights in 16 groups of 16, each with a signed 8-bit scale; 6-bit weights less 32.
// Bytes: 128 low nibbles, 64 high pairs of bits, 16 scales, f16 d. In a half of 128 weights, quarter q takes nibble q / 2 of
// bytes 32 * (q % 2) … and bits 2q, 2q+1 of the 32 high bytes.
#pragma once

#include "support/quant.h"

namespace wavesmith::quants {

struct Q6_K {
    static constexpr const char * name = "q6_K";
    static constexpr int  ggml_type    = 14;
    static constexpr int  block_values = 256;
    static constexpr int  block_bytes  = 210;
    static constexpr int  alignment    = 2;
    static constexpr int  group        = 16;
    static constexpr bool has_minimum  = false;

    template <class Simt> WAVESMITH_DEVICE static Bytes16 unpack(const Simt & simt, const uint8_t * block, int part) {
        const int half = part / 8, quarter = part % 8 / 2, column = 16 * (part % 2);
        Bytes16       value = nibbles(load16<alignment>(simt, block + 64 * half + 32 * (quarter % 2) + column), quarter / 2);
        const Bytes16 high  = field(load16<alignment>(simt, block + 128 + 32 * half + column), 2 * quarter, 0x03);
        WAVESMITH_UNROLL
        for (int i = 0; i < 4; ++i) {
            value.word[i] |= high.word[i] << 4;
        }
        return minus(value, 32);
    }

    template <class Simt> WAVESMITH_DEVICE static Scale scale(const Simt & simt, const uint8_t * block, int index) {
        return { load_half(simt, block + 208) * float(int8_t(load8(simt, block + 192 + index))), 0.0f };
    }
};

}  // namespace wavesmith::quants
