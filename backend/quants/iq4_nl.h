// IQ4_NL: 32 weights, f16 scale, 4-bit codes of a fixed table, in Q4_0's order.
#pragma once

#include "support/blocks_of_32.h"
#include "support/iq4_table.h"

namespace wavesmith::quants {

struct IQ4_NL : BlocksOf32<IQ4_NL> {
    static constexpr const char * name = "iq4_nl";
    static constexpr int ggml_type     = 20;
    static constexpr int block_values  = 32;
    static constexpr int block_bytes   = 18;
    static constexpr int alignment     = 2;
    static constexpr int minimums      = 0;

    struct Chunk {
        Bytes16 codes;
    };
    struct Scales {
        uint32_t d;
    };

    template <class Simt> WAVESMITH_DEVICE static Chunk load(const Simt & simt, const uint8_t * row, int32_t k, int chunk) {
        return { load16<alignment>(simt, block(row, k, chunk) + 2) };
    }
    WAVESMITH_DEVICE static void unpack(const Chunk & chunk, int, Bytes16 (&piece)[pieces]) {
        piece[0] = iq4_values(chunk.codes, 0);
        piece[1] = iq4_values(chunk.codes, 1);
    }

    template <class Simt> WAVESMITH_DEVICE static Scales load_scales(const Simt & simt, const uint8_t * row, int32_t k, int unit) {
        return { load2(simt, block(row, k, unit)) };
    }
    WAVESMITH_DEVICE static StepScale step_scale(const Scales & scales, int32_t, int, int) { return { { half_to_float(uint16_t(scales.d)) }, {} }; }
};

}  // namespace wavesmith::quants
