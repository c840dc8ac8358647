// The 16 values of the non-linear 4-bit types IQ4_NL and IQ4_XS (kvalues_iq4nl in ggml/src/ggml-common.h).
#pragma once

#include "../../arch/byte_permute.h"
#include "quant.h"

namespace wavesmith::quants {

// The low (high: 1 takes the high) nibble of each of 16 bytes as its value: -127 -104 -83 -65 -49 -35 -22 -10, 1 13 25 38 53 69 89 113.
// Two lookups of eight values each; bit 3 of the code chooses between them.
WAVESMITH_DEVICE Bytes16 iq4_values(Bytes16 codes, int high) {
    Bytes16 values;
    WAVESMITH_UNROLL
    for (int i = 0; i < 4; ++i) {
        const uint32_t code  = codes.word[i] >> (4 * high);
        const uint32_t index = code & 0x07070707u;
        const uint32_t below = arch::byte_permute(0xF6EADDCFu, 0xBFAD9881u, index);
        const uint32_t above = arch::byte_permute(0x71594535u, 0x26190D01u, index);
        const uint32_t mask  = ((code >> 3) & 0x01010101u) * 0xFFu;
        values.word[i]       = (above & mask) | (below & ~mask);
    }
    return values;
}

}  // namespace wavesmith::quants
