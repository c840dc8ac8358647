// IQ3_S: 256 weights in 8 groups of 32, each with a 4-bit scale; runs of four weights from a codebook, with signs.
// Bytes: f16 d, 64 low bytes of codebook indices, 8 bytes with the indices' ninth bits, 32 bytes of signs, 4 bytes of scales.
#pragma once

#include "support/codebook.h"
#include "support/groups_of_32.h"
#include "support/iq3_s_grid.h"

namespace wavesmith::quants {

struct IQ3_S : GroupsOf32<IQ3_S> {
    static constexpr const char * name = "iq3_s";
    static constexpr int ggml_type     = 21;
    static constexpr int block_bytes   = 110;
    static constexpr int alignment     = 2;
    static constexpr int parts         = 1;

    struct Chunk {
        Bytes8   low_indices;
        uint32_t signs;
        uint32_t ninth_bits;
    };
    struct Scales {
        uint32_t scales;  // two nibbles
        uint32_t d;
    };

    template <class Simt> WAVESMITH_DEVICE static Chunk load(const Simt & simt, const uint8_t * row, int32_t k, int chunk) {
        const uint8_t * bytes = block(row, k);
        return { load8<alignment>(simt, bytes + 2 + 8 * group(k, chunk)), load4<alignment>(simt, bytes + 74 + 4 * group(k, chunk)),
                 load1(simt, bytes + 66 + group(k, chunk)) };
    }
    WAVESMITH_DEVICE static void unpack(const Chunk & chunk, int, Bytes16 (&piece)[pieces]) {
        WAVESMITH_UNROLL
        for (int run = 0; run < 8; ++run) {
            const uint32_t index         = byte_of(chunk.low_indices, run) | (((chunk.ninth_bits >> run) & 1) << 8);
            piece[run / 4].word[run % 4] = with_signs(iq3_s_grid[index], chunk.signs >> (4 * run));
        }
    }

    template <class Simt> WAVESMITH_DEVICE static Scales load_scales(const Simt & simt, const uint8_t * row, int32_t k, int unit) {
        return { load1(simt, block(row, k) + 106 + 2 * half(k) + unit), load2(simt, block(row, k)) };
    }
    WAVESMITH_DEVICE static StepScale step_scale(const Scales & scales, int32_t, int, int step) {
        return { { half_to_float(uint16_t(scales.d)) * float(2 * ((scales.scales >> (4 * step)) & 0xF) + 1) }, {} };
    }
};

}  // namespace wavesmith::quants
