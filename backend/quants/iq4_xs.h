// IQ4_XS: 256 weights in 8 groups of 32, each with a 6-bit scale less 32; 4-bit codes of a fixed table.
// Bytes: f16 d, 16 bits with the high pairs of the scales, 4 bytes with their low nibbles, 16 bytes of codes per group.
#pragma once

#include "support/iq4_table.h"

namespace wavesmith::quants {

struct IQ4_XS {
    static constexpr const char * name = "iq4_xs";
    static constexpr int  ggml_type    = 23;
    static constexpr int  block_values = 256;
    static constexpr int  block_bytes  = 136;
    static constexpr int  alignment    = 8;
    static constexpr int  group        = 32;
    static constexpr bool has_minimum  = false;

    template <class Simt> WAVESMITH_DEVICE static Bytes16 unpack(const Simt & simt, const uint8_t * block, int part) {
        return iq4_values(nibbles(load16<alignment>(simt, block + 8 + 16 * (part / 2)), part % 2));
    }

    template <class Simt> WAVESMITH_DEVICE static Scale scale(const Simt & simt, const uint8_t * block, int index) {
        const uint32_t high = simt.template load<uint16_t>(block + 2);
        const uint32_t low  = load8(simt, block + 4 + index / 2) >> (4 * (index % 2));
        return { load_half(simt, block) * float(int((low & 0xF) | (((high >> (2 * index)) & 3) << 4)) - 32), 0.0f };
    }
};

}  // namespace wavesmith::quants
