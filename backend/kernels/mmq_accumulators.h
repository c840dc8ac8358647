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
    static_assert(Quant::parts == 1 || Quant::step_values == 32, "two parts are the halves of a matrix step");
    static_assert(rows % 4 == 0 || rows == 2, "scales are read four or two at a time");

    template <int count> struct RowScales {
        arch::F32x2 value[count][rows / 2];
    };
    template <int count> struct Factors {
        arch::F32x2 value[count][columns];
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
    // A step's operand: one matrix step of 32 values, or two.
    struct Operand {
        typename Matrix::Operand part[Quant::step_values / 32];
    };

    template <class Simt> WAVESMITH_DEVICE static Operand load_operand(const Simt & simt, uint32_t rows_of, int row, int step) {
        Operand operand;
        WAVESMITH_UNROLL
        for (int i = 0; i < Quant::step_values / 32; ++i) {
            operand.part[i] = Matrix::load(simt, rows_of + row * Lds::row_stride + step * Quant::step_values + 32 * i, Lds::row_stride);
        }
        return operand;
    }

    template <class Simt, class Record> WAVESMITH_DEVICE void multiply_step(const Simt & simt, uint32_t stage, int step, const Record & record) {
        // What one side's fragments need is loaded once and kept for all fragments of the other: the columns' if that takes few
        // enough registers, else the rows' without their minimums, which then take a pass of their own.
        if constexpr (Quant::minimums < 2) {
            keep_columns(simt, stage, step, record);
        } else {
            keep_rows(simt, stage, step, record);
            add_minimums(simt, stage, step);
        }
    }

    template <class Simt, class Record> WAVESMITH_DEVICE void keep_columns(const Simt & simt, uint32_t stage, int step, const Record & record) {
        Operand                     b[fragments_n];
        Factors<factors>            column_factors[fragments_n];
        Operand                     a;
        RowScales<row_scales>       scales;
        Sums                        sums[1 + lag];
        WAVESMITH_UNROLL
        for (int j = 0; j < fragments_n; ++j) {
            b[j]              = load_operand(simt, stage + Lds::columns, column0_ + j * Matrix::n, step);
            column_factors[j] = load_factors<0, factors>(simt, stage, step, j);
        }
        WAVESMITH_UNROLL
        for (int f = 0; f < fragments_m * fragments_n + lag; ++f) {
            if (f < fragments_m * fragments_n) {
                const int i = f / fragments_n, j = f % fragments_n;
                if (j == 0) {
                    a = load_operand(simt, stage + Lds::weights, row0_ + i * Matrix::m, step);
                }
                if (j == 0 && lag == 0) {
                    scales = load_scales<0, row_scales>(simt, stage, step, i);
                }
                multiply(simt, a, b[j], sums[f % (1 + lag)]);
            }
            if (f >= lag) {
                const int i = (f - lag) / fragments_n, j = (f - lag) % fragments_n;
                if (j == 0 && lag > 0) {
                    scales = load_scales<0, row_scales>(simt, stage, step, i);
                }
                scale(scales, column_factors[j], sums[(f - lag) % (1 + lag)], sum_[i][j]);
                add_minimums<Quant::parts>(scales, column_factors[j], sum_[i][j]);
                record_sums(simt, i, j, step, sums[(f - lag) % (1 + lag)], record);
            }
            arch::schedule_fence();
        }
    }

    template <class Simt, class Record> WAVESMITH_DEVICE void keep_rows(const Simt & simt, uint32_t stage, int step, const Record & record) {
        Operand                 a[fragments_m];
        RowScales<Quant::parts> scales[fragments_m];
        Operand                 b;
        Factors<1>              d[1 + lag];
        Sums                    sums[1 + lag];
        WAVESMITH_UNROLL
        for (int i = 0; i < fragments_m; ++i) {
            a[i]      = load_operand(simt, stage + Lds::weights, row0_ + i * Matrix::m, step);
            scales[i] = load_scales<0, Quant::parts>(simt, stage, step, i);
        }
        WAVESMITH_UNROLL
        for (int f = 0; f < fragments_m * fragments_n + lag; ++f) {
            if (f < fragments_m * fragments_n) {
                const int i = f % fragments_m, j = f / fragments_m;
                if (i == 0) {
                    b                = load_operand(simt, stage + Lds::columns, column0_ + j * Matrix::n, step);
                    d[j % (1 + lag)] = load_factors<Quant::minimums, 1>(simt, stage, step, j);
                }
                multiply(simt, a[i], b, sums[f % (1 + lag)]);
            }
            if (f >= lag) {
                const int i = (f - lag) % fragments_m, j = (f - lag) / fragments_m;
                scale(scales[i], d[j % (1 + lag)], sums[(f - lag) % (1 + lag)], sum_[i][j]);
                record_sums(simt, i, j, step, sums[(f - lag) % (1 + lag)], record);
            }
            arch::schedule_fence();
        }
    }

    template <class Simt> WAVESMITH_DEVICE void add_minimums(const Simt & simt, uint32_t stage, int step) {
        WAVESMITH_UNROLL
        for (int i = 0; i < fragments_m; ++i) {
            const RowScales<Quant::minimums> scales = load_scales<Quant::parts, Quant::minimums>(simt, stage, step, i);
            WAVESMITH_UNROLL
            for (int j = 0; j < fragments_n; ++j) {
                add_minimums<0>(scales, load_factors<0, Quant::minimums>(simt, stage, step, j), sum_[i][j]);
            }
        }
    }

    template <class Simt> WAVESMITH_DEVICE static void multiply(const Simt & simt, const Operand & a, const Operand & b, Sums & sums) {
        start(sums.part);
        WAVESMITH_UNROLL
        for (int p = 0; p < Quant::step_values / 32; ++p) {
            Matrix::template multiply<Quant::parts>(simt, a.part[p], b.part[p], sums.part);
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

    // Scales and minimums `first` … `first + count - 1` of the rows of fragment i.
    template <int first, int count, class Simt>
    WAVESMITH_DEVICE RowScales<count> load_scales(const Simt & simt, uint32_t stage, int step, int i) const {
        const int        position = row0_ + i * Matrix::m + Matrix::first_row_position(simt.lane());
        RowScales<count> scales;
        WAVESMITH_UNROLL
        for (int kind = 0; kind < count; ++kind) {
            float value[rows];
            load_floats(simt, stage + Lds::scale(step, first + kind, position), value);
            WAVESMITH_UNROLL
            for (int p = 0; p < rows / 2; ++p) {
                scales.value[kind][p] = arch::pair(value[2 * p], value[2 * p + 1]);
            }
        }
        return scales;
    }

    // Factors `first` … `first + count - 1` of the columns of fragment j.
    template <int first, int count, class Simt>
    WAVESMITH_DEVICE Factors<count> load_factors(const Simt & simt, uint32_t stage, int step, int j) const {
        Factors<count> loaded;
        WAVESMITH_UNROLL
        for (int c = 0; c < columns; ++c) {
            float     words[count * Lds::copies];
            const int column = column0_ + j * Matrix::n + Matrix::column(simt.lane(), c * rows);
            load_floats(simt, stage + Lds::factor(step, column) + 4 * first * Lds::copies, words);
            WAVESMITH_UNROLL
            for (int kind = 0; kind < count; ++kind) {
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

    // The rule of mmq.h, two rows at a time, one operation for all rows before the next: neighbours do not wait for each other,
    // and the fences keep them neighbours, which is what lets RDNA issue them in pairs.
    template <int scale_count, int factor_count>
    WAVESMITH_DEVICE static void scale(const RowScales<scale_count> & scales, const Factors<factor_count> & column_factors, const Sums & sums,
                                       arch::F32x2 (&accumulators)[pairs]) {
        arch::F32x2 value[pairs], second[pairs];
        WAVESMITH_UNROLL
        for (int p = 0; p < pairs; ++p) {
            value[p] = arch::add(sums_of(sums.part[0], p), arch::pair(-sum_bias, -sum_bias));
        }
        arch::schedule_fence();
        if constexpr (Quant::scale_last) {
            static_assert(Quant::parts == 1 && Quant::minimums == 0, "scale_last: one sum, no minimum");
            WAVESMITH_UNROLL
            for (int p = 0; p < pairs; ++p) {
                value[p] = arch::multiply(column_factors.value[factor_count - 1][p / (rows / 2)], value[p]);
            }
            arch::schedule_fence();
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
            WAVESMITH_UNROLL
            for (int p = 0; p < pairs; ++p) {
                second[p] = arch::add(sums_of(sums.part[1], p), arch::pair(-sum_bias, -sum_bias));
            }
            arch::schedule_fence();
            WAVESMITH_UNROLL
            for (int p = 0; p < pairs; ++p) {
                value[p] = arch::fma(scales.value[1][p % (rows / 2)], second[p], value[p]);
            }
        }
        arch::schedule_fence();
        WAVESMITH_UNROLL
        for (int p = 0; p < pairs; ++p) {
            accumulators[p] = arch::fma(column_factors.value[factor_count - 1][p / (rows / 2)], value[p], accumulators[p]);
        }
    }

    // The terms of the minimums, which begin at that place among the scales.
    template <int scales_begin, int scale_count, int factor_count>
    WAVESMITH_DEVICE static void add_minimums(const RowScales<scale_count> & scales, const Factors<factor_count> & column_factors,
                                              arch::F32x2 (&accumulators)[pairs]) {
        WAVESMITH_UNROLL
        for (int i = 0; i < Quant::minimums; ++i) {
            arch::schedule_fence();
            WAVESMITH_UNROLL
            for (int p = 0; p < pairs; ++p) {
                accumulators[p] = arch::fma(scales.value[scales_begin + i][p % (rows / 2)], column_factors.value[i][p / (rows / 2)], accumulators[p]);
            }
        }
    }

    WAVESMITH_DEVICE static arch::F32x2 sums_of(const typename Matrix::C & sums, int p) {
        return arch::pair(bits_to_float(uint32_t(sums.value[2 * p])), bits_to_float(uint32_t(sums.value[2 * p + 1])));
    }

    template <class Simt, class Record>
    WAVESMITH_DEVICE void record_sums(const Simt & simt, int i, int j, int step, const Sums & sums, const Record & record) const {
        if constexpr (Simt::is_checked) {
            for (int part = 0; part < Quant::parts; ++part) {
                for (int r = 0; r < Matrix::registers; ++r) {
                    record(row0_ + i * Matrix::m + Matrix::row(simt.lane(), r), column0_ + j * Matrix::n + Matrix::column(simt.lane(), r), step, part,
                           sums.part[part].value[r] - sum_bias_bits);
                }
            }
        }
    }
};

}  // namespace wavesmith
