// Q2_K: 256 weights in 16 groups of 16, each with a 4-bit scale and a 4-bit minimum; 2-bit weights.
// Bytes: 16 scale/minimum nibbles, 64 weights (byte l of a 32-byte half holds weights l, l+32, l+64, l+96), f16 d, f16 dmin.
#pragma once

#include "support/quant.h"

namespace wavesmith::quants {

struct Q2_K {
    static constexpr const char * name = "q2_K";
    static constexpr int  ggml_type    = 10;
    static constexpr int  block_values = 256;
    static constexpr int  block_bytes  = 84;
    static constexpr int  alignment    = 4;
    static constexpr int  group        = 16;
    static constexpr bool has_minimum  = true;

    template <class Simt> WAVESMITH_DEVICE static Bytes16 unpack(const Simt & simt, const uint8_t * block, int part) {
        const int half = part / 8, quarter = part % 8 / 2;
        return field(load16<alignment>(simt, block + 16 + 32 * half + 16 * (part % 2)), 2 * quarter, 0x03);
    }

    template <class Simt> WAVESMITH_DEVICE static Scale scale(const Simt & simt, const uint8_t * block, int index) {
        const uint32_t packed = load8(simt, block + index);
        return { load_half(simt, block + 80) * float(packed & 0xF), load_half(simt, block + 82) * float(packed >> 4) };
    }
};

}  // namespace wavesmith::quants
