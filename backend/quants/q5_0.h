// Q5_0: 32 weights, f16 scale, 5-bit weights less 16: nibbles as in Q4_0, fifth bits in one 32-bit word.
#pragma once

#include "support/quant.h"

namespace wavesmith::quants {

struct Q5_0 {
    static constexpr const char * name = "q5_0";
    static constexpr int  ggml_type    = 6;
    static constexpr int  block_values = 32;
    static constexpr int  block_bytes  = 22;
    static constexpr int  alignment    = 2;
    static constexpr int  group        = 32;
    static constexpr bool has_minimum  = false;

    template <class Simt> WAVESMITH_DEVICE static Bytes16 unpack(const Simt & simt, const uint8_t * block, int part) {
        const uint32_t fifth_bits = load32<alignment>(simt, block + 2);
        return minus(with_fifth_bits(nibbles(load16<alignment>(simt, block + 6), part), fifth_bits >> (16 * part)), 16);
    }

    template <class Simt> WAVESMITH_DEVICE static Scale scale(const Simt & simt, const uint8_t * block, int) {
        return { load_half(simt, block), 0.0f };
    }
};

}  // namespace wavesmith::quants
