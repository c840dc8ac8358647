// The tile of an mmq block and its place in LDS.
#pragma once

#include "mmq_arguments.h"

namespace wavesmith {

// A tile plan's numbers: rows and columns of the block, how its waves share them, how many tiles of K fit in LDS at once.
template <int tile_m_, int tile_n_, int waves_m_, int waves_n_, int stages_> struct MmqTile {
    static constexpr int tile_m  = tile_m_;
    static constexpr int tile_n  = tile_n_;
    static constexpr int tile_k  = q8_1_block_values;
    static constexpr int waves_m = waves_m_;
    static constexpr int waves_n = waves_n_;
    static constexpr int stages  = stages_;
};

// Byte offsets within a stage. Rows of 144 bytes put the 16-byte reads of eight neighbouring rows in different banks.
//     weights   int8 [tile_m][tile_k], padded rows
//     scales    f32 [step][part or minimum][tile_m positions], the order of rows being the matrix step's row_position
//     columns   int8 [tile_n][tile_k], padded rows
//     factors   f32 [step][tile_n][one per minimum: d times the sum of its activations, then d][copies], padded to 16 bytes where longer
// With two copies a lane has a factor in two neighbouring registers, so that the two multiplications of a dual-issued pair
// read it from different register banks.
template <class Quant, class Tile, class Matrix> struct MmqLds {
    static constexpr int      steps      = Tile::tile_k / Quant::step_values;
    static constexpr uint32_t row_stride = Tile::tile_k + 16;
    static constexpr int      row_scales = Quant::parts + Quant::minimums;
    static constexpr int      factors_of = 1 + Quant::minimums;
    static constexpr int      copies     = Matrix::dual_issue ? 2 : 1;
    static constexpr int      factor_words = factors_of * copies > 4 ? (factors_of * copies + 3) / 4 * 4 : factors_of * copies;

    static constexpr uint32_t weights = 0;
    static constexpr uint32_t scales  = weights + Tile::tile_m * row_stride;
    static constexpr uint32_t columns = scales + steps * row_scales * Tile::tile_m * 4;
    static constexpr uint32_t factors = columns + Tile::tile_n * row_stride;
    static constexpr uint32_t stage   = factors + steps * Tile::tile_n * factor_words * 4;
    static constexpr uint32_t bytes   = Tile::stages * stage;

    WAVESMITH_DEVICE static constexpr uint32_t scale(int step, int kind, int position) {
        return scales + 4 * ((step * row_scales + kind) * Tile::tile_m + position);
    }
    WAVESMITH_DEVICE static constexpr uint32_t factor(int step, int column) {
        return factors + 4 * factor_words * (step * Tile::tile_n + column);
    }
};

}  // namespace wavesmith
