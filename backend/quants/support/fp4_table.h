// The 4-bit floats (E2M1) of MXFP4 and NVFP4, doubled so that they are integers (kvalues_mxfp4 in ggml/src/ggml-common.h); a
// block's scale is halved to make up for it.
#pragma once

#include "nibble_table.h"

namespace wavesmith::quants {

// The low (high: 1 takes the high) nibble of each of 16 bytes as its doubled value: 0 1 2 3 4 6 8 12, then the same negated.
WAVESMITH_DEVICE Bytes16 fp4_values(Bytes16 codes, int high) {
    return looked_up({ { 0x03020100u, 0x0C080604u, 0xFDFEFF00u, 0xF4F8FAFCu } }, codes, high);
}

}  // namespace wavesmith::quants
