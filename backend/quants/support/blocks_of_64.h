// What the types with blocks of 64 weights share: a tile of 128 values is two blocks, a block is two steps.
#pragma once

#include "quant.h"

namespace wavesmith::quants {

template <class Own> struct BlocksOf64 : Defaults {
    static constexpr int block_values = 64;
    static constexpr int minimums     = 0;
    static constexpr int scale_steps  = 2;

    WAVESMITH_DEVICE static const uint8_t * block(const uint8_t * row, int32_t k, int index) {
        return row + (k / 64 + index) * Own::block_bytes;
    }
};

}  // namespace wavesmith::quants
