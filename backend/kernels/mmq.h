// mmq: quantised weights x quantised activations on int8 matrix instructions (or dot4), any M, N and K.
//
// One block computes a tile of tile_m weight rows by tile_n columns. Per 128 values of K the weights are unpacked to signed
// bytes in LDS together with their f32 scales and minimums, the activations (layout d4s8) are copied beside them, and each
// wave multiplies its part of the tile one scale group (16 or 32 values) at a time.
//
// Numbers. The int32 sum of a group is exact. With s the group's sum, t the sum of its quantised activations and d their
// scale, every output element is, for the groups in order of K,
//     accumulator = fma(d, fma(-minimum, float(t), scale * float(s)), accumulator)        (without a minimum: fma(d, scale * float(s), …))
// in f32, starting from 0: the same whatever the tile, the grid, the number of columns or the position in the batch.
// |s| <= 32 * 127 * 128 < 2^24, so float(s) is exact. Error of a group against exact arithmetic on the quantised values: at
// most four roundings, 4 * 2^-24 of the sum of magnitudes.
#pragma once

#include "../quants/support/quant.h"
#include "q8_1_blocks.h"

namespace wavesmith {

struct MmqArguments {
    const uint8_t * weights;             // first weight row of batch entry or expert 0
    const uint8_t * activations;         // d4s8 blocks [ceil(k / 128)][activation_rows]
    uint8_t *       output;              // f32, element (row 0, column 0) of batch entry 0
    const int32_t * slots;               // MUL_MAT_ID: token * used + place, grouped by expert; else null
    const int32_t * slot_bounds;         // MUL_MAT_ID: expert e owns slots slot_bounds[e] up to slot_bounds[e + 1]; else null
    int32_t *       integer_sums;        // int32 [n][m][k / group], written by the checked host build alone; null
    int32_t         m;                   // weight rows
    int32_t         n;                   // columns of a batch entry (MUL_MAT) or of the fullest expert (MUL_MAT_ID)
    int32_t         k;                   // values of a row, whole blocks
    int32_t         activation_rows;     // rows of all batch entries of the activations
    int32_t         used;                // MUL_MAT_ID: experts per token; else 1
    int32_t         activation_columns;  // MUL_MAT_ID: rows of the activations per token, 1 or used
    int32_t         ne12;                // batch entries in dimension 2 of the activations
    int32_t         ratio2;              // batch entries of the activations per entry of the weights, dimension 2
    int32_t         ratio3;              // the same, dimension 3
    int64_t         nb01;                // bytes between weight rows
    int64_t         nb02;                // bytes between weight entries of dimension 2, or experts
    int64_t         nb03;                // bytes between weight entries of dimension 3
    int64_t         nb1;                 // bytes between output columns
    int64_t         nb2;                 // bytes between output entries of dimension 2, or tokens
    int64_t         nb3;                 // bytes between output entries of dimension 3
};

// Tile of one variant: rows and columns of the block, and how its waves share them.
template <int tile_m_, int tile_n_, int waves_m_, int waves_n_> struct MmqTile {
    static constexpr int tile_m  = tile_m_;
    static constexpr int tile_n  = tile_n_;
    static constexpr int waves_m = waves_m_;
    static constexpr int waves_n = waves_n_;
};

// LDS of a tile, in byte offsets. Row strides of 144 and 176 bytes put the 16-byte reads of eight neighbouring rows in
// different banks.
template <class Quant, class Tile> struct MmqLds {
    static constexpr int      tile_k        = q8_1_block_values;
    static constexpr int      groups        = tile_k / Quant::group;
    static constexpr uint32_t weight_stride = tile_k + 16;
    static constexpr uint32_t column_stride = tile_k + 32 + 16;
    static constexpr uint32_t weights       = 0;
    static constexpr uint32_t scales        = weights + Tile::tile_m * weight_stride;   // f32 [groups][tile_m]
    static constexpr uint32_t minimums      = scales + groups * Tile::tile_m * 4;        // f32 [groups][tile_m]
    static constexpr uint32_t columns       = minimums + (Quant::has_minimum ? groups * Tile::tile_m * 4 : 0);
    static constexpr uint32_t bytes         = columns + Tile::tile_n * column_stride;
};

template <class Arch_, class Quant, class Tile> struct Mmq {
    using Arch      = Arch_;
    using Arguments = MmqArguments;
    using Lds       = MmqLds<Quant, Tile>;
    using Matrix    = typename Arch::template Int8Matrix<Quant::group>;

    static constexpr int      waves       = Tile::waves_m * Tile::waves_n;
    static constexpr uint32_t threads     = waves * Arch::wave_size;
    static constexpr uint32_t lds_bytes   = Lds::bytes;
    static constexpr int      fragments_m = Tile::tile_m / Tile::waves_m / Matrix::m;
    static constexpr int      fragments_n = Tile::tile_n / Tile::waves_n / Matrix::n;
    static constexpr int      block_bytes = q8_1_block_bytes(Q8_1Layout::d4s8);

    static_assert(fragments_m * Matrix::m * Tile::waves_m == Tile::tile_m && fragments_n * Matrix::n * Tile::waves_n == Tile::tile_n,
                  "the waves' matrix tiles must cover the block's tile exactly");
    static_assert(Quant::group % Matrix::k == 0, "a scale group must be whole matrix steps");
    static_assert(lds_bytes <= Arch::lds_bytes, "the tile does not fit the LDS of a workgroup");

    // Grid: (ceil(m / tile_m), ceil(n / tile_n), batch entries of src1 or experts).
    template <class Simt> WAVESMITH_DEVICE static void run(const Simt & simt, const Arguments & arguments) {
        TilePosition tile;
        tile.row0    = int32_t(simt.block_x()) * Tile::tile_m;
        tile.column0 = int32_t(simt.block_y()) * Tile::tile_n;
        tile.columns = arguments.n;
        tile.slots   = nullptr;
        if (arguments.slots) {
            const int32_t begin = simt.template load<int32_t>(arguments.slot_bounds + simt.block_z());
            tile.columns        = simt.template load<int32_t>(arguments.slot_bounds + simt.block_z() + 1) - begin;
            tile.slots          = arguments.slots + begin;
        }
        if (tile.column0 >= tile.columns) {
            return;
        }
        const uint8_t * weights = weights_of_block(simt, arguments);

        Accumulators accumulators = {};
        for (int32_t k0 = 0; k0 < arguments.k; k0 += Lds::tile_k) {
            stage_weights(simt, arguments, weights, tile, k0);
            stage_scales(simt, arguments, weights, tile, k0);
            stage_columns(simt, arguments, tile, k0);
            simt.barrier();
            multiply(simt, arguments, tile, k0, accumulators);
            simt.barrier();
        }
        store(simt, arguments, tile, accumulators);
    }

  private:
    struct TilePosition {
        int32_t         row0, column0;  // of the tile
        int32_t         columns;        // that exist in this batch entry or expert
        const int32_t * slots;
    };
    struct Accumulators {
        float value[fragments_m][fragments_n][Matrix::registers];
    };

    template <class Simt> WAVESMITH_DEVICE static const uint8_t * weights_of_block(const Simt & simt, const Arguments & arguments) {
        const int32_t z = int32_t(simt.block_z());
        if (arguments.slots) {
            return arguments.weights + z * arguments.nb02;
        }
        return arguments.weights + z % arguments.ne12 / arguments.ratio2 * arguments.nb02 + z / arguments.ne12 / arguments.ratio3 * arguments.nb03;
    }

    template <class Simt> WAVESMITH_DEVICE static int32_t slot_of(const Simt & simt, const TilePosition & tile, int32_t column) {
        return simt.template load<int32_t>(tile.slots + column);
    }

    WAVESMITH_DEVICE static const uint8_t * block_address(const Arguments & arguments, const uint8_t * weights, int32_t row, int32_t k) {
        return weights + row * arguments.nb01 + int64_t(k / Quant::block_values) * Quant::block_bytes;
    }

    // One item is 16 weights of a row; neighbouring threads take neighbouring items of the same row.
    template <class Simt>
    WAVESMITH_DEVICE static void stage_weights(const Simt & simt, const Arguments & arguments, const uint8_t * weights, const TilePosition & tile, int32_t k0) {
        constexpr int parts = Lds::tile_k / 16;
        for (int item = int(simt.thread()); item < Tile::tile_m * parts; item += int(threads)) {
            const int     row  = item / parts;
            const int     part = item % parts;
            const int32_t k    = k0 + 16 * part;
            Bytes16       bytes = {};
            if (tile.row0 + row < arguments.m && k < arguments.k) {
                bytes = Quant::unpack(simt, block_address(arguments, weights, tile.row0 + row, k), k % Quant::block_values / 16);
            }
            simt.lds_store(Lds::weights + row * Lds::weight_stride + 16 * part, bytes);
        }
    }

    template <class Simt>
    WAVESMITH_DEVICE static void stage_scales(const Simt & simt, const Arguments & arguments, const uint8_t * weights, const TilePosition & tile, int32_t k0) {
        for (int item = int(simt.thread()); item < Tile::tile_m * Lds::groups; item += int(threads)) {
            const int     row   = item % Tile::tile_m;
            const int     group = item / Tile::tile_m;
            const int32_t k     = k0 + Quant::group * group;
            quants::Scale scale = { 0.0f, 0.0f };
            if (tile.row0 + row < arguments.m && k < arguments.k) {
                scale = Quant::scale(simt, block_address(arguments, weights, tile.row0 + row, k), k % Quant::block_values / Quant::group);
            }
            simt.lds_store(Lds::scales + 4 * item, scale.scale);
            if constexpr (Quant::has_minimum) {
                simt.lds_store(Lds::minimums + 4 * item, scale.minimum);
            }
        }
    }

    template <class Simt>
    WAVESMITH_DEVICE static void stage_columns(const Simt & simt, const Arguments & arguments, const TilePosition & tile, int32_t k0) {
        constexpr int   chunks = block_bytes / 16;
        const uint8_t * blocks = arguments.activations + int64_t(k0 / Lds::tile_k) * arguments.activation_rows * block_bytes;
        for (int item = int(simt.thread()); item < Tile::tile_n * chunks; item += int(threads)) {
            const int column = item / chunks;
            const int chunk  = item % chunks;
            Bytes16   bytes  = {};
            if (tile.column0 + column < tile.columns) {
                const int64_t row = activation_row(simt, arguments, tile, tile.column0 + column);
                bytes             = simt.template load<Bytes16>(blocks + row * block_bytes + 16 * chunk);
            }
            simt.lds_store(Lds::columns + column * Lds::column_stride + 16 * chunk, bytes);
        }
    }

    template <class Simt>
    WAVESMITH_DEVICE static int64_t activation_row(const Simt & simt, const Arguments & arguments, const TilePosition & tile, int32_t column) {
        if (tile.slots) {
            const int32_t slot = slot_of(simt, tile, column);
            return int64_t(slot / arguments.used) * arguments.activation_columns + slot % arguments.used % arguments.activation_columns;
        }
        return int64_t(simt.block_z()) * arguments.n + column;
    }

    template <class Simt>
    WAVESMITH_DEVICE static void multiply(const Simt & simt, const Arguments & arguments, const TilePosition & tile, int32_t k0, Accumulators & accumulators) {
        const int row0    = int(simt.wave()) % Tile::waves_m * fragments_m * Matrix::m;
        const int column0 = int(simt.wave()) / Tile::waves_m * fragments_n * Matrix::n;
        for (int group = 0; group < Lds::groups; ++group) {
            WAVESMITH_UNROLL
            for (int i = 0; i < fragments_m; ++i) {
                const uint32_t       a_offset = Lds::weights + (row0 + i * Matrix::m) * Lds::weight_stride + group * Quant::group;
                typename Matrix::A   a[Quant::group / Matrix::k];
                WAVESMITH_UNROLL
                for (int step = 0; step < Quant::group / Matrix::k; ++step) {
                    a[step] = Matrix::load_a(simt, a_offset + step * Matrix::k, Lds::weight_stride);
                }
                WAVESMITH_UNROLL
                for (int j = 0; j < fragments_n; ++j) {
                    const uint32_t     b_offset = Lds::columns + (column0 + j * Matrix::n) * Lds::column_stride + 32 + group * Quant::group;
                    typename Matrix::C sums     = {};
                    WAVESMITH_UNROLL
                    for (int step = 0; step < Quant::group / Matrix::k; ++step) {
                        Matrix::multiply(simt, a[step], Matrix::load_b(simt, b_offset + step * Matrix::k, Lds::column_stride), sums);
                    }
                    accumulate(simt, row0 + i * Matrix::m, column0 + j * Matrix::n, group, sums, accumulators.value[i][j]);
                    if constexpr (Simt::is_checked) {
                        record(simt, arguments, tile, row0 + i * Matrix::m, column0 + j * Matrix::n, k0 / Quant::group + group, sums);
                    }
                }
            }
        }
    }

    template <class Simt>
    WAVESMITH_DEVICE static void accumulate(const Simt & simt, int row0, int column0, int group, const typename Matrix::C & sums,
                                            float (&accumulators)[Matrix::registers]) {
        WAVESMITH_UNROLL
        for (int r = 0; r < Matrix::registers; ++r) {
            const int      row    = row0 + Matrix::row(simt.lane(), r);
            const uint32_t column = Lds::columns + (column0 + Matrix::column(simt.lane(), r)) * Lds::column_stride;
            const float    scale  = simt.template lds_load<float>(Lds::scales + 4 * (group * Tile::tile_m + row));
            const float    d      = simt.template lds_load<float>(column + group * Quant::group / 32 * 4);
            float          part   = scale * float(sums.value[r]);
            if constexpr (Quant::has_minimum) {
                const float minimum = simt.template lds_load<float>(Lds::minimums + 4 * (group * Tile::tile_m + row));
                part                = __builtin_fmaf(-minimum, float(activation_sum(simt, column, group)), part);
            }
            accumulators[r] = __builtin_fmaf(d, part, accumulators[r]);
        }
    }

    // Sum of the group's quantised activations: one int16 for 16 values, two for 32.
    template <class Simt> WAVESMITH_DEVICE static int32_t activation_sum(const Simt & simt, uint32_t column, int group) {
        if constexpr (Quant::group == 16) {
            return simt.template lds_load<int16_t>(column + 16 + 2 * group);
        }
        const uint32_t pair = simt.template lds_load<uint32_t>(column + 16 + 4 * group);
        return int32_t(int16_t(pair & 0xFFFF)) + int32_t(int16_t(pair >> 16));
    }

    template <class Simt>
    WAVESMITH_DEVICE static void record(const Simt & simt, const Arguments & arguments, const TilePosition & tile, int row0, int column0, int32_t group,
                                        const typename Matrix::C & sums) {
        if (!arguments.integer_sums || group * Quant::group >= arguments.k) {
            return;
        }
        for (int r = 0; r < Matrix::registers; ++r) {
            const int32_t row    = tile.row0 + row0 + Matrix::row(simt.lane(), r);
            const int32_t column = tile.column0 + column0 + Matrix::column(simt.lane(), r);
            if (row < arguments.m && column < tile.columns) {
                const int64_t index = (int64_t(column) * arguments.m + row) * (arguments.k / Quant::group) + group;
                simt.template store<int32_t>(arguments.integer_sums + index, sums.value[r]);
            }
        }
    }

    template <class Simt>
    WAVESMITH_DEVICE static void store(const Simt & simt, const Arguments & arguments, const TilePosition & tile, const Accumulators & accumulators) {
        const int row0    = int(simt.wave()) % Tile::waves_m * fragments_m * Matrix::m;
        const int column0 = int(simt.wave()) / Tile::waves_m * fragments_n * Matrix::n;
        WAVESMITH_UNROLL
        for (int i = 0; i < fragments_m; ++i) {
            WAVESMITH_UNROLL
            for (int j = 0; j < fragments_n; ++j) {
                WAVESMITH_UNROLL
                for (int r = 0; r < Matrix::registers; ++r) {
                    const int32_t row    = tile.row0 + row0 + i * Matrix::m + Matrix::row(simt.lane(), r);
                    const int32_t column = tile.column0 + column0 + j * Matrix::n + Matrix::column(simt.lane(), r);
                    if (row < arguments.m && column < tile.columns) {
                        simt.template store<float>(output_column(simt, arguments, tile, column) + row * int64_t(sizeof(float)),
                                                   accumulators.value[i][j][r]);
                    }
                }
            }
        }
    }

    template <class Simt>
    WAVESMITH_DEVICE static uint8_t * output_column(const Simt & simt, const Arguments & arguments, const TilePosition & tile, int32_t column) {
        if (tile.slots) {
            const int32_t slot = slot_of(simt, tile, column);
            return arguments.output + slot / arguments.used * arguments.nb2 + slot % arguments.used * arguments.nb1;
        }
        const int32_t z = int32_t(simt.block_z());
        return arguments.output + z / arguments.ne12 * arguments.nb3 + z % arguments.ne12 * arguments.nb2 + column * arguments.nb1;
    }
};

}  // namespace wavesmith
