// IQ1_S: 256 weights in 8 groups of 32, each with a 3-bit scale and the sign of an offset; runs of eight weights from a codebook.
// Bytes: f16 d, 32 low bytes of codebook indices, 16 bits per group: four times three high bits of the indices, the scale, and
// the offset's sign in the top bit.
//
// A weight is scale * (c ± 1/8) with c of -1, 0, 1 from the codebook: the integer is 8 * c ± 1, and the scale an eighth.
#pragma once

#include "support/codebook.h"
#include "support/groups_of_32.h"
#include "support/iq1_s_grid.h"

namespace wavesmith::quants {

struct IQ1_S : GroupsOf32<IQ1_S> {
    static constexpr const char * name = "iq1_s";
    static constexpr int ggml_type     = 19;
    static constexpr int block_bytes   = 50;
    static constexpr int alignment     = 2;
    static constexpr int parts         = 1;

    struct Chunk {
        uint32_t low_indices;
        uint32_t high;
    };
    struct Scales {
        uint32_t high;  // of two groups
        uint32_t d;
    };

    template <class Simt> WAVESMITH_DEVICE static Chunk load(const Simt & simt, const uint8_t * row, int32_t k, int chunk) {
        return { load4<alignment>(simt, block(row, k) + 2 + 4 * group(k, chunk)), load2(simt, block(row, k) + 34 + 2 * group(k, chunk)) };
    }
    WAVESMITH_DEVICE static void unpack(const Chunk & chunk, int, Bytes16 (&piece)[pieces]) {
        const uint32_t values = chunk.high & 0x8000 ? 0x0007FFF7u : 0x000901F9u;  // -9 -1 7, or -7 1 9
        WAVESMITH_UNROLL
        for (int run = 0; run < 4; ++run) {
            const uint32_t entry = iq1_s_grid[byte_of(chunk.low_indices, run) | (((chunk.high >> (3 * run)) & 7) << 8)];
            WAVESMITH_UNROLL
            for (int high = 0; high < 2; ++high) {
                piece[run / 2].word[run % 2 * 2 + high] = arch::byte_permute(0, values, codes_of(entry, high));
            }
        }
    }

    template <class Simt> WAVESMITH_DEVICE static Scales load_scales(const Simt & simt, const uint8_t * row, int32_t k, int unit) {
        return { load4<alignment>(simt, block(row, k) + 34 + 2 * group(k, 2 * unit)), load2(simt, block(row, k)) };
    }
    WAVESMITH_DEVICE static StepScale step_scale(const Scales & scales, int32_t, int, int step) {
        const uint32_t scale = (scales.high >> (12 + 16 * step)) & 7;
        return { { half_to_float(uint16_t(scales.d)) * (float(2 * scale + 1) * 0.125f) }, {} };
    }
};

}  // namespace wavesmith::quants
