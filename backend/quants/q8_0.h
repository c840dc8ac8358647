// Q8_0: 32 weights, f16 scale, signed bytes.
#pragma once

#include "support/blocks_of_32.h"

namespace wavesmith::quants {

struct Q8_0 : BlocksOf32<Q8_0> {
    static constexpr const char * name = "q8_0";
    static constexpr int ggml_type     = 8;
    static constexpr int block_values  = 32;
    static constexpr int block_bytes   = 34;
    static constexpr int alignment     = 2;
    static constexpr int minimums      = 0;

    struct Chunk {
        Bytes16 bytes[2];
    };
    struct Scales {
        uint32_t d;
    };

    template <class Simt> WAVESMITH_DEVICE static Chunk load(const Simt & simt, const uint8_t * row, int32_t k, int chunk) {
        return { { load16<alignment>(simt, block(row, k, chunk) + 2), load16<alignment>(simt, block(row, k, chunk) + 18) } };
    }
    WAVESMITH_DEVICE static void unpack(const Chunk & chunk, int, Bytes16 (&piece)[pieces]) {
        piece[0] = chunk.bytes[0];
        piece[1] = chunk.bytes[1];
    }

    template <class Simt> WAVESMITH_DEVICE static Scales load_scales(const Simt & simt, const uint8_t * row, int32_t k, int unit) {
        return { load2(simt, block(row, k, unit)) };
    }
    WAVESMITH_DEVICE static StepScale step_scale(const Scales & scales, int32_t, int, int) { return { { half_to_float(uint16_t(scales.d)) }, {} }; }
};

}  // namespace wavesmith::quants
