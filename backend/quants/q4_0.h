// Q4_0: 32 weights, f16 scale, 4-bit weights less 8. Byte j holds weight j (low nibble) and j + 16 (high).
#pragma once

#include "support/quant.h"

namespace wavesmith::quants {

struct Q4_0 {
    static constexpr const char * name = "q4_0";
    static constexpr int  ggml_type    = 2;
    static constexpr int  block_values = 32;
    static constexpr int  block_bytes  = 18;
    static constexpr int  alignment    = 2;
    static constexpr int  group        = 32;
    static constexpr bool has_minimum  = false;

    template <class Simt> WAVESMITH_DEVICE static Bytes16 unpack(const Simt & simt, const uint8_t * block, int part) {
        return minus(nibbles(load16<alignment>(simt, block + 2), part), 8);
    }

    template <class Simt> WAVESMITH_DEVICE static Scale scale(const Simt & simt, const uint8_t * block, int) {
        return { load_half(simt, block), 0.0f };
    }
};

}  // namespace wavesmith::quants
