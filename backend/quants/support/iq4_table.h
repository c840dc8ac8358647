// The 16 values of the non-linear 4-bit types IQ4_NL and IQ4_XS (kvalues_iq4nl in ggml/src/ggml-common.h).
#pragma once

#include "nibble_table.h"

namespace wavesmith::quants {

// The low (high: 1 takes the high) nibble of each of 16 bytes as its value: -127 -104 -83 -65 -49 -35 -22 -10, 1 13 25 38 53 69 89 113.
WAVESMITH_DEVICE Bytes16 iq4_values(Bytes16 codes, int high) {
    return looked_up({ { 0xBFAD9881u, 0xF6EADDCFu, 0x26190D01u, 0x71594535u } }, codes, high);
}

}  // namespace wavesmith::quants
