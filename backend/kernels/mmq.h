// mmq: quantised weights x quantised activations on int8 matrix instructions (or dot4), any M, N and K.
//
// One block computes a tile of tile_m weight rows by tile_n columns and keeps its results in registers over all of K. While
// the waves multiply one tile of 128 values of K from LDS, the next one's bytes are already on their way into registers; they
// are unpacked to signed bytes and stored into the other LDS stage (or, with one stage, into the same after a barrier).
//
// Numbers. A type's integers are multiplied with the quantised activations into exact int32 sums, one or two per step of 32
// or 64 values (quants/support/quant.h). With s the sums, d the activations' scale and t the sums of the quantised activations, an
// output element is, for the steps in order of K,
//     value       = scale[0] * float(s[0]);    two parts: value = fma(scale[1], float(s[1]), value)
//     accumulator = fma(d, value, accumulator)
//     accumulator = fma(-minimum[i], d * float(t[i]), accumulator)    for each minimum
// or, for a type whose scales may be as large as an f32 can be (scale_last),
//     accumulator = fma(scale[0], d * float(s[0]), accumulator)
// in f32, starting from 0: the same whatever the tile, the family, the grid, the number of columns or the place in the batch.
// |s| <= 64 * 127 * 128 < 2^22, so float(s) is exact. Error of a step against exact arithmetic on the quantised values: at
// most four roundings, 4 * 2^-24 of the sum of magnitudes.
#pragma once

#include "mmq_accumulators.h"
#include "mmq_columns.h"
#include "mmq_weights.h"

namespace wavesmith {

template <class Arch_, class Quant, class Tile> struct Mmq {
    using Arch      = Arch_;
    using Arguments = MmqArguments;
    using Matrix    = typename Arch::template Int8Step<Quant::parts>;
    using Lds       = MmqLds<Quant, Tile, Matrix>;

    static constexpr int      waves     = Tile::waves_m * Tile::waves_n;
    static constexpr uint32_t threads   = waves * Arch::wave_size;
    static constexpr uint32_t lds_bytes = Lds::bytes;

    static_assert(lds_bytes <= Arch::lds_bytes, "the tile does not fit the LDS of a workgroup");

    // Grid: (ceil(m / tile_m), ceil(n / tile_n), batch entries of src1 or experts).
    template <class Simt> WAVESMITH_DEVICE static void run(const Simt & simt, const Arguments & arguments) {
        const Position position = position_of(simt, arguments);
        if (position.column0 >= position.columns) {
            return;
        }
        const uint8_t * weights = weights_of(simt, arguments, position);
        const uint8_t * blocks  = arguments.activations;
        const int64_t   advance = int64_t(arguments.activation_rows) * q8_1_block_bytes(Q8_1Layout::d4s8);

        MmqWeights<Quant, Tile, Matrix, threads> next_weights(simt, arguments, position.row0);
        MmqColumns<Quant, Tile, Matrix, threads> next_columns(
            simt, [&](int column) { return activation_row(simt, arguments, position, column); });
        MmqAccumulators<Quant, Tile, Matrix> accumulators(simt);

        next_weights.load(simt, arguments, weights, 0);
        next_columns.load(simt, blocks);
        next_weights.store(simt, 0, 0);
        next_columns.store(simt, 0);
        simt.barrier();
        uint32_t stage = 0;
        for (int32_t k = 0; k < arguments.k; k += Tile::tile_k) {
            const bool     more = k + Tile::tile_k < arguments.k;
            const uint32_t next = Tile::stages > 1 ? Lds::stage - stage : 0;
            if (more) {
                blocks += advance;
                next_weights.load(simt, arguments, weights, k + Tile::tile_k);
                next_columns.load(simt, blocks);
            }
            accumulators.multiply(simt, stage, [&](int row, int column, int step, int part, int32_t sum) {
                record(simt, arguments, position, row, column, k + Quant::step_values * step, part, sum);
            });
            if (more) {
                if (Tile::stages == 1) {
                    simt.barrier();
                }
                next_weights.store(simt, next, k + Tile::tile_k);
                next_columns.store(simt, next);
                simt.barrier();
            }
            stage = next;
        }
        uint8_t * output = output_of(simt, arguments, position);
        accumulators.store_columns(simt, [&](int column, const auto & store_rows) {
            const int32_t n = position.column0 + column;
            if (n < position.columns) {
                uint8_t * first = output + output_offset(simt, arguments, position, n);
                store_rows([&](int row, float value) {
                    const int32_t m = position.row0 + row;
                    if (m < arguments.m) {
                        simt.template store<float>(first + uint32_t(m) * 4, value);
                    }
                });
            }
        });
    }

  private:
    struct Position {
        int32_t         row0, column0;  // of the tile
        int32_t         columns;        // that exist in this batch entry or expert
        const int32_t * slots;
    };

    template <class Simt> WAVESMITH_DEVICE static Position position_of(const Simt & simt, const Arguments & arguments) {
        Position position = { int32_t(simt.block_x()) * Tile::tile_m, int32_t(simt.block_y()) * Tile::tile_n, arguments.n, nullptr };
        if (arguments.slots) {
            const int32_t begin = simt.template load<int32_t>(arguments.slot_bounds + simt.block_z());
            position.columns    = simt.template load<int32_t>(arguments.slot_bounds + simt.block_z() + 1) - begin;
            position.slots      = arguments.slots + begin;
        }
        return position;
    }

    // First weight row of the tile.
    template <class Simt> WAVESMITH_DEVICE static const uint8_t * weights_of(const Simt & simt, const Arguments & arguments, const Position & position) {
        const int32_t   z    = int32_t(simt.block_z());
        const uint8_t * rows = arguments.weights + position.row0 * arguments.nb01;
        if (arguments.slots) {
            return rows + z * arguments.nb02;
        }
        return rows + z % arguments.ne12 / arguments.ratio2 * arguments.nb02 + z / arguments.ne12 / arguments.ratio3 * arguments.nb03;
    }

    // Row of the quantised activations of a column of the tile. A column past the last repeats the last one: its results are
    // never stored.
    template <class Simt>
    WAVESMITH_DEVICE static uint32_t activation_row(const Simt & simt, const Arguments & arguments, const Position & position, int column) {
        const int32_t n = position.column0 + column < position.columns ? position.column0 + column : position.columns - 1;
        if (position.slots) {
            const int32_t slot = simt.template load<int32_t>(position.slots + n);
            return uint32_t(slot / arguments.used * arguments.activation_columns + slot % arguments.used % arguments.activation_columns);
        }
        return simt.block_z() * uint32_t(arguments.n) + uint32_t(n);
    }

    // Where the output of batch entry z begins; with experts, of all slots.
    template <class Simt> WAVESMITH_DEVICE static uint8_t * output_of(const Simt & simt, const Arguments & arguments, const Position & position) {
        const int32_t z = int32_t(simt.block_z());
        return position.slots ? arguments.output : arguments.output + z / arguments.ne12 * arguments.nb3 + z % arguments.ne12 * arguments.nb2;
    }

    template <class Simt>
    WAVESMITH_DEVICE static int64_t output_offset(const Simt & simt, const Arguments & arguments, const Position & position, int32_t column) {
        if (position.slots) {
            const int32_t slot = simt.template load<int32_t>(position.slots + column);
            return slot / arguments.used * arguments.nb2 + slot % arguments.used * arguments.nb1;
        }
        return column * arguments.nb1;
    }

    template <class Simt>
    WAVESMITH_DEVICE static void record(const Simt & simt, const Arguments & arguments, const Position & position, int row, int column, int32_t k,
                                        int part, int32_t sum) {
        const int32_t m = position.row0 + row, n = position.column0 + column;
        if (arguments.integer_sums && m < arguments.m && n < position.columns && k < arguments.k) {
            const int64_t steps = arguments.k / Quant::step_values;
            const int64_t index = ((int64_t(n) * arguments.m + m) * steps + k / Quant::step_values) * Quant::parts + part;
            simt.template store<int32_t>(arguments.integer_sums + index, sum);
        }
    }
};

}  // namespace wavesmith
