// Q4_1: 32 weights, f16 scale and f16 offset, 4-bit weights. Byte j holds weight j (low nibble) and j + 16 (high).
#pragma once

#include "support/quant.h"

namespace wavesmith::quants {

struct Q4_1 {
    static constexpr const char * name = "q4_1";
    static constexpr int  ggml_type    = 3;
    static constexpr int  block_values = 32;
    static constexpr int  block_bytes  = 20;
    static constexpr int  alignment    = 4;
    static constexpr int  group        = 32;
    static constexpr bool has_minimum  = true;

    template <class Simt> WAVESMITH_DEVICE static Bytes16 unpack(const Simt & simt, const uint8_t * block, int part) {
        return nibbles(load16<alignment>(simt, block + 4), part);
    }

    template <class Simt> WAVESMITH_DEVICE static Scale scale(const Simt & simt, const uint8_t * block, int) {
        return { load_half(simt, block), -load_half(simt, block + 2) };
    }
};

}  // namespace wavesmith::quants
