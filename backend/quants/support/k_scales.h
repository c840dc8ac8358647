// The 16 bytes that begin a block of Q4_K and Q5_K: f16 d, f16 dmin, then 12 bytes with eight 6-bit scales and eight 6-bit
// minimums.
#pragma once

#include "quant.h"

namespace wavesmith::quants {

struct KScales {
    Bytes16 header;
};

// Scale and minimum of group 0 … 7. Groups 0-3 lie in the low six bits of bytes 0-3 (scales) and 4-7 (minimums); groups 4-7
// have their low nibbles in bytes 8-11 and their two high bits on top of those.
WAVESMITH_DEVICE StepScale k_step_scale(const KScales & scales, int group) {
    const uint32_t * word     = scales.header.word;
    const float      d        = half_to_float(uint16_t(word[0]));
    const float      dmin     = half_to_float(uint16_t(word[0] >> 16));
    const int        index    = group % 4;
    const uint32_t   first    = byte_of(word[1], index);
    const uint32_t   second   = byte_of(word[2], index);
    const uint32_t   nibbles  = byte_of(word[3], index);
    const uint32_t   low      = group < 4 ? first & 63 : (nibbles & 0xF) | (first >> 6 << 4);
    const uint32_t   low_min  = group < 4 ? second & 63 : (nibbles >> 4) | (second >> 6 << 4);
    return { { d * float(low) }, { dmin * float(low_min) } };
}

}  // namespace wavesmith::quants
