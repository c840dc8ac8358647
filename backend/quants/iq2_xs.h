// IQ2_XS: 256 weights in 16 groups of 16, each with a 4-bit scale; runs of eight weights from a codebook, with signs.
// Bytes: f16 d, 16 bits per run (nine of codebook index, seven signs), 8 bytes of scales (low nibble: first group of 16).
#pragma once

#include "support/codebook.h"
#include "support/groups_of_32.h"
#include "support/iq2_xs_grid.h"

namespace wavesmith::quants {

struct IQ2_XS : GroupsOf32<IQ2_XS> {
    static constexpr const char * name = "iq2_xs";
    static constexpr int ggml_type     = 17;
    static constexpr int block_bytes   = 74;
    static constexpr int alignment     = 2;
    static constexpr int parts         = 2;

    struct Chunk {
        Bytes8 indices_signs;
    };
    struct Scales {
        uint32_t scales;  // of four groups
        uint32_t d;
    };

    template <class Simt> WAVESMITH_DEVICE static Chunk load(const Simt & simt, const uint8_t * row, int32_t k, int chunk) {
        return { load8<alignment>(simt, block(row, k) + 2 + 8 * group(k, chunk)) };
    }
    WAVESMITH_DEVICE static void unpack(const Chunk & chunk, int, Bytes16 (&piece)[pieces]) {
        WAVESMITH_UNROLL
        for (int run = 0; run < 4; ++run) {
            const uint32_t bits = chunk.indices_signs.word[run / 2] >> (16 * (run % 2));
            put_iq2_weights(piece[run / 2], run % 2 * 2, iq2_xs_grid[bits & 0x1FF], eight_signs(bits >> 9));
        }
    }

    template <class Simt> WAVESMITH_DEVICE static Scales load_scales(const Simt & simt, const uint8_t * row, int32_t k, int unit) {
        return { load2(simt, block(row, k) + 66 + group(k, 2 * unit)), load2(simt, block(row, k)) };
    }
    WAVESMITH_DEVICE static StepScale step_scale(const Scales & scales, int32_t, int, int step) {
        return iq2_step_scale(half_to_float(uint16_t(scales.d)), byte_of(scales.scales, step));
    }
};

}  // namespace wavesmith::quants
