// Q2_0: 64 weights, f16 scale, 2-bit weights less 1, four neighbours to a byte.
#pragma once

#include "../arch/byte_permute.h"
#include "support/blocks_of_64.h"

namespace wavesmith::quants {

struct Q2_0 : BlocksOf64<Q2_0> {
    static constexpr const char * name = "q2_0";
    static constexpr int ggml_type     = 42;
    static constexpr int block_bytes   = 18;
    static constexpr int alignment     = 2;
    static constexpr int parts         = 1;
    static constexpr int chunks        = 2;
    static constexpr int pieces        = 4;

    struct Chunk {
        Bytes16 crumbs;
    };
    struct Scales {
        uint32_t d;
    };

    WAVESMITH_DEVICE static constexpr int offset(int chunk, int piece) { return 64 * chunk + 16 * piece; }

    template <class Simt> WAVESMITH_DEVICE static Chunk load(const Simt & simt, const uint8_t * row, int32_t k, int chunk) {
        return { load16<alignment>(simt, block(row, k, chunk) + 2) };
    }
    WAVESMITH_DEVICE static void unpack(const Chunk & chunk, int, Bytes16 (&piece)[pieces]) {
        WAVESMITH_UNROLL
        for (int p = 0; p < pieces; ++p) {
            WAVESMITH_UNROLL
            for (int i = 0; i < 4; ++i) {
                piece[p].word[i] = arch::byte_permute(0, 0x020100FFu, spread(byte_of(chunk.crumbs.word[p], i)));
            }
        }
    }

    template <class Simt> WAVESMITH_DEVICE static Scales load_scales(const Simt & simt, const uint8_t * row, int32_t k, int unit) {
        return { load2(simt, block(row, k, unit)) };
    }
    WAVESMITH_DEVICE static StepScale step_scale(const Scales & scales, int32_t, int, int) { return { { half_to_float(uint16_t(scales.d)) }, {} }; }

  private:
    // Each pair of bits of a byte in a byte of its own.
    WAVESMITH_DEVICE static uint32_t spread(uint32_t crumbs) {
        const uint32_t pairs = (crumbs | crumbs << 12) & 0x000F000Fu;
        return (pairs | pairs << 6) & 0x03030303u;
    }
};

}  // namespace wavesmith::quants
