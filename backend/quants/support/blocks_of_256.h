// What the types with blocks of 256 weights share: a tile of 128 values is one half of a block.
#pragma once

#include "quant.h"

namespace wavesmith::quants {

template <class Own> struct BlocksOf256 : Defaults {
    static constexpr int block_values = 256;

    WAVESMITH_DEVICE static const uint8_t * block(const uint8_t * row, int32_t k) { return row + k / 256 * Own::block_bytes; }
    WAVESMITH_DEVICE static int half(int32_t k) { return k / 128 % 2; }
};

}  // namespace wavesmith::quants
