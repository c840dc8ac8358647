// IQ4_NL: 32 weights, f16 scale, 4-bit codes of a fixed table, in Q4_0's order.
#pragma once

#include "support/iq4_table.h"

namespace wavesmith::quants {

struct IQ4_NL {
    static constexpr const char * name = "iq4_nl";
    static constexpr int  ggml_type    = 20;
    static constexpr int  block_values = 32;
    static constexpr int  block_bytes  = 18;
    static constexpr int  alignment    = 2;
    static constexpr int  group        = 32;
    static constexpr bool has_minimum  = false;

    template <class Simt> WAVESMITH_DEVICE static Bytes16 unpack(const Simt & simt, const uint8_t * block, int part) {
        return iq4_values(nibbles(load16<alignment>(simt, block + 2), part));
    }

    template <class Simt> WAVESMITH_DEVICE static Scale scale(const Simt & simt, const uint8_t * block, int) {
        return { load_half(simt, block), 0.0f };
    }
};

}  // namespace wavesmith::quants
