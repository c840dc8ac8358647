// IQ4_XS: 256 weights in 8 groups of 32, each with a 6-bit scale less 32; 4-bit codes of a fixed table.
// Bytes: f16 d, 16 bits with the high pairs of the scales, 4 bytes with their low nibbles, 16 bytes of codes per group.
#pragma once

#include "support/blocks_of_256.h"
#include "support/iq4_table.h"

namespace wavesmith::quants {

struct IQ4_XS : BlocksOf256<IQ4_XS> {
    static constexpr const char * name = "iq4_xs";
    static constexpr int ggml_type     = 23;
    static constexpr int block_values  = 256;
    static constexpr int block_bytes   = 136;
    static constexpr int alignment     = 8;
    static constexpr int step_values   = 32;
    static constexpr int parts         = 1;
    static constexpr int chunks        = 4;
    static constexpr int pieces        = 2;
    static constexpr int minimums      = 0;
    static constexpr int scale_steps   = 2;

    struct Chunk {
        Bytes16 codes;
    };
    struct Scales {
        Bytes8 header;
    };

    WAVESMITH_DEVICE static constexpr int offset(int chunk, int piece) { return 32 * chunk + 16 * piece; }

    template <class Simt> WAVESMITH_DEVICE static Chunk load(const Simt & simt, const uint8_t * row, int32_t k, int chunk) {
        return { load16<alignment>(simt, block(row, k) + 8 + 64 * half(k) + 16 * chunk) };
    }
    WAVESMITH_DEVICE static void unpack(const Chunk & chunk, int, Bytes16 (&piece)[pieces]) {
        piece[0] = iq4_values(chunk.codes, 0);
        piece[1] = iq4_values(chunk.codes, 1);
    }

    template <class Simt> WAVESMITH_DEVICE static Scales load_scales(const Simt & simt, const uint8_t * row, int32_t k, int) {
        return { load8<alignment>(simt, block(row, k)) };
    }
    WAVESMITH_DEVICE static StepScale step_scale(const Scales & scales, int32_t k, int unit, int step) {
        const int      group = 4 * half(k) + 2 * unit + step;
        const uint32_t high  = scales.header.word[0] >> (16 + 2 * group);
        const uint32_t low   = scales.header.word[1] >> (4 * group);
        return { { half_to_float(uint16_t(scales.header.word[0])) * float(int((low & 0xF) | ((high & 3) << 4)) - 32) }, {} };
    }
};

}  // namespace wavesmith::quants
