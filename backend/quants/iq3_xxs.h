// IQ3_XXS: 256 weights in 8 groups of 32, each with a 4-bit scale; runs of four weights from a codebook, with signs.
// Bytes: f16 d, 64 codebook indices, a word per group with four times seven signs and the scale in its top bits.
#pragma once

#include "support/codebook.h"
#include "support/groups_of_32.h"
#include "support/iq3_xxs_grid.h"

namespace wavesmith::quants {

struct IQ3_XXS : GroupsOf32<IQ3_XXS> {
    static constexpr const char * name = "iq3_xxs";
    static constexpr int ggml_type     = 18;
    static constexpr int block_bytes   = 98;
    static constexpr int alignment     = 2;
    static constexpr int parts         = 1;

    struct Chunk {
        Bytes8   indices;
        uint32_t signs;
    };
    struct Scales {
        uint32_t d;
        uint32_t scales[2];  // top four of 16 bits
    };

    template <class Simt> WAVESMITH_DEVICE static Chunk load(const Simt & simt, const uint8_t * row, int32_t k, int chunk) {
        return { load8<alignment>(simt, block(row, k) + 2 + 8 * group(k, chunk)), load4<alignment>(simt, block(row, k) + 66 + 4 * group(k, chunk)) };
    }
    WAVESMITH_DEVICE static void unpack(const Chunk & chunk, int, Bytes16 (&piece)[pieces]) {
        WAVESMITH_UNROLL
        for (int run = 0; run < 8; ++run) {
            const uint32_t values    = iq3_xxs_grid[byte_of(chunk.indices, run)];
            piece[run / 4].word[run % 4] = with_signs(values, eight_signs(chunk.signs >> (run / 2 * 7)) >> (run % 2 * 4));
        }
    }

    template <class Simt> WAVESMITH_DEVICE static Scales load_scales(const Simt & simt, const uint8_t * row, int32_t k, int unit) {
        const uint8_t * top = block(row, k) + 68 + 4 * group(k, 2 * unit);
        return { load2(simt, block(row, k)), { load2(simt, top), load2(simt, top + 4) } };
    }
    WAVESMITH_DEVICE static StepScale step_scale(const Scales & scales, int32_t, int, int step) {
        return { { half_to_float(uint16_t(scales.d)) * (float(2 * (scales.scales[step] >> 12) + 1) * 0.25f) }, {} };
    }
};

}  // namespace wavesmith::quants
