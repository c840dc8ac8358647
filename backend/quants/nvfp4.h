// NVFP4: 64 weights in 4 groups of 16, each with an 8-bit float as scale (E4M3 without sign); 4-bit floats.
// Bytes: 4 scales, 8 bytes of codes per group, whose byte j holds weight j (low nibble) and j + 8 (high).
#pragma once

#include "support/blocks_of_64.h"
#include "support/fp4_table.h"

namespace wavesmith::quants {

struct NVFP4 : BlocksOf64<NVFP4> {
    static constexpr const char * name = "nvfp4";
    static constexpr int ggml_type     = 40;
    static constexpr int block_bytes   = 36;
    static constexpr int alignment     = 4;
    static constexpr int parts         = 2;
    static constexpr int chunks        = 4;
    static constexpr int pieces        = 2;

    struct Chunk {
        Bytes16 codes;  // of two groups
    };
    struct Scales {
        uint32_t scales;
    };

    WAVESMITH_DEVICE static constexpr int offset(int chunk, int piece) { return 32 * chunk + 16 * piece; }

    template <class Simt> WAVESMITH_DEVICE static Chunk load(const Simt & simt, const uint8_t * row, int32_t k, int chunk) {
        return { load16<alignment>(simt, block(row, k, chunk / 2) + 4 + 16 * (chunk % 2)) };
    }
    WAVESMITH_DEVICE static void unpack(const Chunk & chunk, int, Bytes16 (&piece)[pieces]) {
        const Bytes16 low  = fp4_values(chunk.codes, 0);
        const Bytes16 high = fp4_values(chunk.codes, 1);
        WAVESMITH_UNROLL
        for (int p = 0; p < pieces; ++p) {
            piece[p] = { { low.word[2 * p], low.word[2 * p + 1], high.word[2 * p], high.word[2 * p + 1] } };
        }
    }

    template <class Simt> WAVESMITH_DEVICE static Scales load_scales(const Simt & simt, const uint8_t * row, int32_t k, int unit) {
        return { load4<alignment>(simt, block(row, k, unit)) };
    }
    WAVESMITH_DEVICE static StepScale step_scale(const Scales & scales, int32_t, int, int step) {
        return { { halved_scale(byte_of(scales.scales, 2 * step)), halved_scale(byte_of(scales.scales, 2 * step + 1)) }, {} };
    }

  private:
    // The E4M3 bits are those of an f16 256 times smaller. 0x7F, the NaN, counts as 0; bit 7 of other scales is ignored.
    WAVESMITH_DEVICE static float halved_scale(uint32_t scale) {
        return scale == 0x7F ? 0.0f : half_to_float(uint16_t((scale & 0x7F) << 7)) * 128.0f;
    }
};

}  // namespace wavesmith::quants
