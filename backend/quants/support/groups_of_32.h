// What the types share whose blocks of 256 weights are eight groups of 32 neighbours, stored one after the other: a chunk is a
// group.
#pragma once

#include "blocks_of_256.h"

namespace wavesmith::quants {

template <class Own> struct GroupsOf32 : BlocksOf256<Own> {
    static constexpr int chunks      = 4;
    static constexpr int pieces      = 2;
    static constexpr int minimums    = 0;
    static constexpr int scale_steps = 2;

    WAVESMITH_DEVICE static constexpr int offset(int chunk, int piece) { return 32 * chunk + 16 * piece; }

    // Group of the block that a chunk of a tile is.
    WAVESMITH_DEVICE static int group(int32_t k, int chunk) { return 4 * BlocksOf256<Own>::half(k) + chunk; }
};

}  // namespace wavesmith::quants
