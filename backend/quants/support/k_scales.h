// The 12 bytes of scales and minimums that Q4_K and Q5_K share: eight 6-bit scales and eight 6-bit minimums.
#pragma once

#include "quant.h"

namespace wavesmith::quants {

struct KScale {
    uint32_t scale;
    uint32_t minimum;
};

// Groups 0-3 lie in the low six bits of bytes 0-3 (scales) and 4-7 (minimums); groups 4-7 have their low nibbles in
// bytes 8-11 and their two high bits on top of those.
template <class Simt> WAVESMITH_DEVICE KScale k_scale(const Simt & simt, const uint8_t * scales, int index) {
    if (index < 4) {
        return { load8(simt, scales + index) & 63, load8(simt, scales + index + 4) & 63 };
    }
    const uint32_t low = load8(simt, scales + index + 4);
    return { (low & 0xF) | (load8(simt, scales + index - 4) >> 6 << 4), (low >> 4) | (load8(simt, scales + index) >> 6 << 4) };
}

}  // namespace wavesmith::quants
