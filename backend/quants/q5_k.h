// Q5_K: 256 weights in 8 groups of 32, each with a 6-bit scale and a 6-bit minimum; 5-bit weights.
// Bytes: f16 d, f16 dmin, 12 bytes of scales, 32 bytes of fifth bits (bit g of byte l belongs to group g), 128 nibbles as in Q4_K.
#pragma once

#include "support/k_scales.h"

namespace wavesmith::quants {

struct Q5_K {
    static constexpr const char * name = "q5_K";
    static constexpr int  ggml_type    = 13;
    static constexpr int  block_values = 256;
    static constexpr int  block_bytes  = 176;
    static constexpr int  alignment    = 16;
    static constexpr int  group        = 32;
    static constexpr bool has_minimum  = true;

    template <class Simt> WAVESMITH_DEVICE static Bytes16 unpack(const Simt & simt, const uint8_t * block, int part) {
        const Bytes16 low  = nibbles(load16<alignment>(simt, block + 48 + 32 * (part / 4) + 16 * (part % 2)), part % 4 / 2);
        const Bytes16 high = load16<alignment>(simt, block + 16 + 16 * (part % 2));
        return with_bit(low, high, part / 2, 4);
    }

    template <class Simt> WAVESMITH_DEVICE static Scale scale(const Simt & simt, const uint8_t * block, int index) {
        const KScale k = k_scale(simt, block + 4, index);
        return { load_half(simt, block) * float(k.scale), load_half(simt, block + 2) * float(k.minimum) };
    }
};

}  // namespace wavesmith::quants
