// The part of an mmq tile that one wave computes: matrix steps, and the scales applied to their sums.
#pragma once

#include "../arch/f32x2.h"
#include "../arch/schedule_fence.h"
#include "../quants/support/half.h"
#include "mmq_tile.h"

namespace wavesmith {

// Matrix products start from this bit pattern: with |sum| < 2^22, pattern + sum are the bits of 12582912.0 + sum, and the sum
// is a float after one subtraction, which can share an instruction slot where a conversion cannot.
constexpr int32_t sum_bias_bits = 0x4B400000;
constexpr float   sum_bias      = 12582912.0f;

template <class Quant, class Tile, class Matrix> class MmqAccumulators {
    using Lds = MmqLds<Quant, Tile, Matrix>;

    static constexpr int fragments_m = Tile::tile_m / Tile::waves_m / Matrix::m;
    static constexpr int fragments_n = Tile::tile_n / Tile::waves_n / Matrix::n;
    static constexpr int rows        = Matrix::rows_per_lane;
    static constexpr int columns     = Matrix::columns_per_lane;
    static constexpr int pairs       = Matrix::registers / 2;  // results are handled two rows at a time
    static constexpr int row_scales  = Lds::row_scales;
    static constexpr int factors     = Lds::factors_of;
    // Where matrix products run beside vector instructions, a product's sums are scaled while the next one is under way.
    static constexpr int lag         = Matrix::runs_beside_vector ? 1 : 0;

    static_assert(fragments_m > 0 && fragments_m * Matrix::m * Tile::waves_m == Tile::tile_m, "the waves' rows must cover the tile exactly");
    static_assert(fragments_n > 0 && fragments_n * Matrix::n * Tile::waves_n == Tile::tile_n, "the waves' columns must cover the tile exactly");
    static_assert(rows % 4 == 0 || rows == 2, "scales are read four or two at a time");

    struct RowScales {
        arch::F32x2 value[row_scales][rows / 2];
    };
    struct Factors {
        arch::F32x2 value[factors][columns];
    };

    struct Sums {
        typename Matrix::C part[Quant::parts];
    };

    arch::F32x2 sum_[fragments_m][fragments_n][pairs];
    int         row0_, column0_;

  public:
    template <class Simt> WAVESMITH_DEVICE explicit MmqAccumulators(const Simt & simt)
        : row0_(int(simt.wave()) % Tile::waves_m * fragments_m * Matrix::m), column0_(int(simt.wave()) / Tile::waves_m * fragments_n * Matrix::n) {
        WAVESMITH_UNROLL
        for (int i = 0; i < fragments_m; ++i) {
            WAVESMITH_UNROLL
            for (int j = 0; j < fragments_n; ++j) {
                WAVESMITH_UNROLL
                for (int p = 0; p < pairs; ++p) {
                    sum_[i][j][p] = arch::pair(0.0f, 0.0f);
                }
            }
        }
    }

    // Adds the products of one tile of K. `record(row, column, step, part, sum)` sees every integer sum in the checked build.
    template <class Simt, class Record> WAVESMITH_DEVICE void multiply(const Simt & simt, uint32_t stage, const Record & record) {
        WAVESMITH_UNROLL
        for (int step = 0; step < Lds::steps; ++step) {
            multiply_step(simt, stage, step, record);
        }
    }

    // `store_column(column, rows)` for every column of this lane, where `rows(store)` calls store(row, value) for its rows.
    template <class Simt, class StoreColumn> WAVESMITH_DEVICE void store_columns(const Simt & simt, const StoreColumn & store_column) const {
        WAVESMITH_UNROLL
        for (int j = 0; j < fragments_n; ++j) {
            WAVESMITH_UNROLL
            for (int c = 0; c < columns; ++c) {
                store_column(column0_ + j * Matrix::n + Matrix::column(simt.lane(), c * rows), [&](const auto & store) {
                    WAVESMITH_UNROLL
                    for (int i = 0; i < fragments_m; ++i) {
                        WAVESMITH_UNROLL
                        for (int r = 0; r < rows; ++r) {
                            const arch::F32x2 pair = sum_[i][j][(c * rows + r) / 2];
                            store(row0_ + i * Matrix::m + Matrix::row(simt.lane(), r), r % 2 ? arch::second(pair) : arch::first(pair));
                        }
                    }
                });
            }
        }
    }

  private:
    template <class Simt, class Record> WAVESMITH_DEVICE void multiply_step(const Simt & simt, uint32_t stage, int step, const Record & record) {
        typename Matrix::Operand b[fragments_n];
        Factors                  column_factors[fragments_n];
        WAVESMITH_UNROLL
        for (int j = 0; j < fragments_n; ++j) {
            b[j]              = Matrix::load(simt, stage + Lds::columns + (column0_ + j * Matrix::n) * Lds::row_stride + 32 * step, Lds::row_stride);
            column_factors[j] = load_factors(simt, stage, step, column0_ + j * Matrix::n);
        }
        typename Matrix::Operand a;
        RowScales                scales[1 + lag];
        Sums                     sums[1 + lag];
        WAVESMITH_UNROLL
        for (int f = 0; f < fragments_m * fragments_n + lag; ++f) {
            if (f < fragments_m * fragments_n) {
                const int i = f / fragments_n, j = f % fragments_n;
                if (j == 0) {
                    const int row       = row0_ + i * Matrix::m;
                    a                   = Matrix::load(simt, stage + Lds::weights + row * Lds::row_stride + 32 * step, Lds::row_stride);
                    scales[i % (1 + lag)] = load_scales(simt, stage, step, row);
                }
                start(sums[f % (1 + lag)].part);
                Matrix::template multiply<Quant::parts>(simt, a, b[j], sums[f % (1 + lag)].part);
            }
            if (f >= lag) {
                const int i = (f - lag) / fragments_n, j = (f - lag) % fragments_n;
                scale(scales[i % (1 + lag)], column_factors[j], sums[(f - lag) % (1 + lag)].part, sum_[i][j]);
                if constexpr (Simt::is_checked) {
                    record_sums(simt, row0_ + i * Matrix::m, column0_ + j * Matrix::n, step, sums[(f - lag) % (1 + lag)].part, record);
                }
            }
            arch::schedule_fence();
        }
    }

    WAVESMITH_DEVICE static void start(typename Matrix::C (&sums)[Quant::parts]) {
        WAVESMITH_UNROLL
        for (int part = 0; part < Quant::parts; ++part) {
            WAVESMITH_UNROLL
            for (int r = 0; r < Matrix::registers; ++r) {
                sums[part].value[r] = sum_bias_bits;
            }
        }
    }

    template <class Simt> WAVESMITH_DEVICE static RowScales load_scales(const Simt & simt, uint32_t stage, int step, int row) {
        RowScales scales;
        WAVESMITH_UNROLL
        for (int kind = 0; kind < row_scales; ++kind) {
            float value[rows];
            load_floats(simt, stage + Lds::scale(step, kind, row + Matrix::first_row_position(simt.lane())), value);
            WAVESMITH_UNROLL
            for (int p = 0; p < rows / 2; ++p) {
                scales.value[kind][p] = arch::pair(value[2 * p], value[2 * p + 1]);
            }
        }
        return scales;
    }

    template <class Simt> WAVESMITH_DEVICE static Factors load_factors(const Simt & simt, uint32_t stage, int step, int column0) {
        Factors loaded;
        WAVESMITH_UNROLL
        for (int c = 0; c < columns; ++c) {
            float          words[factors * Lds::copies];
            const uint32_t address = stage + Lds::factor(step, column0 + Matrix::column(simt.lane(), c * rows));
            load_floats(simt, address, words);
            WAVESMITH_UNROLL
            for (int kind = 0; kind < factors; ++kind) {
                loaded.value[kind][c] = arch::pair(words[kind * Lds::copies], words[kind * Lds::copies + Lds::copies - 1]);
            }
        }
        return loaded;
    }

    // In the widest reads that the number of floats allows.
    template <int count, class Simt> WAVESMITH_DEVICE static void load_floats(const Simt & simt, uint32_t address, float (&value)[count]) {
        constexpr int width = count % 4 == 0 ? 4 : count % 2 == 0 ? 2 : 1;
        struct alignas(4 * width) Floats {
            float value[width];
        };
        WAVESMITH_UNROLL
        for (int i = 0; i < count; i += width) {
            const Floats floats = simt.template lds_load<Floats>(address + 4 * i);
            WAVESMITH_UNROLL
            for (int w = 0; w < width; ++w) {
                value[i + w] = floats.value[w];
            }
        }
    }

    // The rule of mmq.h, two rows at a time, one operation for all rows before the next: neighbours do not wait for each other.
    WAVESMITH_DEVICE static void scale(const RowScales & scales, const Factors & column_factors, const typename Matrix::C (&sums)[Quant::parts],
                                       arch::F32x2 (&accumulators)[pairs]) {
        arch::F32x2 value[pairs];
        WAVESMITH_UNROLL
        for (int p = 0; p < pairs; ++p) {
            value[p] = arch::add(sums_of(sums[0], p), arch::pair(-sum_bias, -sum_bias));
        }
        if constexpr (Quant::scale_last) {
            static_assert(Quant::parts == 1 && Quant::minimums == 0, "scale_last: one sum, no minimum");
            WAVESMITH_UNROLL
            for (int p = 0; p < pairs; ++p) {
                value[p] = arch::multiply(column_factors.value[0][p / (rows / 2)], value[p]);
            }
            WAVESMITH_UNROLL
            for (int p = 0; p < pairs; ++p) {
                accumulators[p] = arch::fma(scales.value[0][p % (rows / 2)], value[p], accumulators[p]);
            }
            return;
        }
        WAVESMITH_UNROLL
        for (int p = 0; p < pairs; ++p) {
            value[p] = arch::multiply(scales.value[0][p % (rows / 2)], value[p]);
        }
        if constexpr (Quant::parts == 2) {
            arch::F32x2 second[pairs];
            WAVESMITH_UNROLL
            for (int p = 0; p < pairs; ++p) {
                second[p] = arch::add(sums_of(sums[1], p), arch::pair(-sum_bias, -sum_bias));
            }
            WAVESMITH_UNROLL
            for (int p = 0; p < pairs; ++p) {
                value[p] = arch::fma(scales.value[1][p % (rows / 2)], second[p], value[p]);
            }
        }
        WAVESMITH_UNROLL
        for (int p = 0; p < pairs; ++p) {
            accumulators[p] = arch::fma(column_factors.value[0][p / (rows / 2)], value[p], accumulators[p]);
        }
        WAVESMITH_UNROLL
        for (int i = 0; i < Quant::minimums; ++i) {
            WAVESMITH_UNROLL
            for (int p = 0; p < pairs; ++p) {
                accumulators[p] = arch::fma(scales.value[Quant::parts + i][p % (rows / 2)], column_factors.value[1 + i][p / (rows / 2)], accumulators[p]);
            }
        }
    }

    WAVESMITH_DEVICE static arch::F32x2 sums_of(const typename Matrix::C & sums, int p) {
        return arch::pair(bits_to_float(uint32_t(sums.value[2 * p])), bits_to_float(uint32_t(sums.value[2 * p + 1])));
    }

    template <class Simt, class Record>
    WAVESMITH_DEVICE static void record_sums(const Simt & simt, int row0, int column0, int step, const typename Matrix::C (&sums)[Quant::parts],
                                             const Record & record) {
        for (int part = 0; part < Quant::parts; ++part) {
            for (int r = 0; r < Matrix::registers; ++r) {
                record(row0 + Matrix::row(simt.lane(), r), column0 + Matrix::column(simt.lane(), r), step, part, sums[part].value[r] - sum_bias_bits);
            }
        }
    }
};

}  // namespace wavesmith
