// What the types with blocks of 32 weights share: a chunk is a block, and a block is a step with one scale.
#pragma once

#include "quant.h"

namespace wavesmith::quants {

template <class Own> struct BlocksOf32 : Defaults {
    static constexpr int block_values = 32;
    static constexpr int step_values  = 32;
    static constexpr int parts        = 1;
    static constexpr int chunks       = 4;
    static constexpr int pieces       = 2;
    static constexpr int scale_steps  = 1;

    WAVESMITH_DEVICE static constexpr int offset(int chunk, int piece) { return 32 * chunk + 16 * piece; }

    WAVESMITH_DEVICE static const uint8_t * block(const uint8_t * row, int32_t k, int index) {
        return row + (k / 32 + index) * Own::block_bytes;
    }
};

}  // namespace wavesmith::quants
