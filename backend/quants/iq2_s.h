// IQ2_S: 256 weights in 16 groups of 16, each with a 4-bit scale; runs of eight weights from a codebook, with signs.
// Bytes: f16 d, 32 low bytes of codebook indices, 32 bytes of signs, 8 bytes with the indices' high pairs of bits, 8 bytes of
// scales (low nibble: first group of 16).
#pragma once

#include "support/codebook.h"
#include "support/groups_of_32.h"
#include "support/iq2_s_grid.h"

namespace wavesmith::quants {

struct IQ2_S : GroupsOf32<IQ2_S> {
    static constexpr const char * name = "iq2_s";
    static constexpr int ggml_type     = 22;
    static constexpr int block_bytes   = 82;
    static constexpr int alignment     = 2;
    static constexpr int parts         = 2;

    struct Chunk {
        uint32_t low_indices, signs;
        uint32_t high_indices;  // two bits per run
    };
    struct Scales {
        uint32_t scales;  // of four groups
        uint32_t d;
    };

    template <class Simt> WAVESMITH_DEVICE static Chunk load(const Simt & simt, const uint8_t * row, int32_t k, int chunk) {
        const uint8_t * low = block(row, k) + 2 + 4 * group(k, chunk);
        return { load4<alignment>(simt, low), load4<alignment>(simt, low + 32), load1(simt, block(row, k) + 66 + group(k, chunk)) };
    }
    WAVESMITH_DEVICE static void unpack(const Chunk & chunk, int, Bytes16 (&piece)[pieces]) {
        WAVESMITH_UNROLL
        for (int run = 0; run < 4; ++run) {
            const uint32_t index = byte_of(chunk.low_indices, run) | (((chunk.high_indices >> (2 * run)) & 3) << 8);
            put_iq2_weights(piece[run / 2], run % 2 * 2, iq2_s_grid[index], byte_of(chunk.signs, run));
        }
    }

    template <class Simt> WAVESMITH_DEVICE static Scales load_scales(const Simt & simt, const uint8_t * row, int32_t k, int unit) {
        return { load2(simt, block(row, k) + 74 + group(k, 2 * unit)), load2(simt, block(row, k)) };
    }
    WAVESMITH_DEVICE static StepScale step_scale(const Scales & scales, int32_t, int, int step) {
        return iq2_step_scale(half_to_float(uint16_t(scales.d)), byte_of(scales.scales, step));
    }
};

}  // namespace wavesmith::quants
