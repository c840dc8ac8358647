// The 16 values of the non-linear 4-bit types IQ4_NL and IQ4_XS (kvalues_iq4nl in ggml/src/ggml-common.h).
#pragma once

#include "quant.h"

namespace wavesmith::quants {

// Byte n of the two words is the value of code n (0-7 and 8-15): -127 -104 -83 -65 -49 -35 -22 -10, 1 13 25 38 53 69 89 113.
constexpr uint64_t iq4_values_low  = 0xF6EADDCFBFAD9881u;
constexpr uint64_t iq4_values_high = 0x7159453526190D01u;

// 16 codes (0-15), one a byte, to their values.
WAVESMITH_DEVICE Bytes16 iq4_values(Bytes16 codes) {
    Bytes16 values;
    WAVESMITH_UNROLL
    for (int i = 0; i < 4; ++i) {
        values.word[i] = 0;
        WAVESMITH_UNROLL
        for (int j = 0; j < 4; ++j) {
            const uint32_t code  = (codes.word[i] >> (8 * j)) & 0xF;
            const uint64_t table = code < 8 ? iq4_values_low : iq4_values_high;
            values.word[i] |= (uint32_t(table >> (8 * (code & 7))) & 0xFF) << (8 * j);
        }
    }
    return values;
}

}  // namespace wavesmith::quants
