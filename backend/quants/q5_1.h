// Q5_1: 32 weights, f16 scale and f16 offset, 5-bit weights: nibbles as in Q4_0, fifth bits in one 32-bit word.
#pragma once

#include "support/quant.h"

namespace wavesmith::quants {

struct Q5_1 {
    static constexpr const char * name = "q5_1";
    static constexpr int  ggml_type    = 7;
    static constexpr int  block_values = 32;
    static constexpr int  block_bytes  = 24;
    static constexpr int  alignment    = 8;
    static constexpr int  group        = 32;
    static constexpr bool has_minimum  = true;

    template <class Simt> WAVESMITH_DEVICE static Bytes16 unpack(const Simt & simt, const uint8_t * block, int part) {
        const uint32_t fifth_bits = load32<alignment>(simt, block + 4);
        return with_fifth_bits(nibbles(load16<alignment>(simt, block + 8), part), fifth_bits >> (16 * part));
    }

    template <class Simt> WAVESMITH_DEVICE static Scale scale(const Simt & simt, const uint8_t * block, int) {
        return { load_half(simt, block), -load_half(simt, block + 2) };
    }
};

}  // namespace wavesmith::quants
