// The part of an mmq tile that one wave computes: matrix steps, and the scales applied to their sums.
#pragma once

#include "../arch/f32x2.h"
#include "../quants/support/half.h"
#include "mmq_tile.h"

namespace wavesmith {

// Matrix products start from this bit pattern: with |sum| < 2^22, pattern + sum are the bits of 12582912.0 + sum, and the sum
// is a float after one subtraction, which can share an instruction slot where a conversion cannot.
constexpr int32_t sum_bias_bits = 0x4B400000;
constexpr float   sum_bias      = 12582912.0f;

template <class Quant, class Tile, class Matrix> class MmqAccumulators {
    using Lds = MmqLds<Quant, Tile>;

    static constexpr int fragments_m = Tile::tile_m / Tile::waves_m / Matrix::m;
    static constexpr int fragments_n = Tile::tile_n / Tile::waves_n / Matrix::n;
    static constexpr int rows        = Matrix::rows_per_lane;
    static constexpr int columns     = Matrix::columns_per_lane;
    static constexpr int row_scales  = Lds::row_scales;
    static constexpr int factors     = Lds::factors_of;

    static_assert(fragments_m > 0 && fragments_m * Matrix::m * Tile::waves_m == Tile::tile_m, "the waves' rows must cover the tile exactly");
    static_assert(fragments_n > 0 && fragments_n * Matrix::n * Tile::waves_n == Tile::tile_n, "the waves' columns must cover the tile exactly");
    static_assert(rows % 4 == 0 || rows == 2, "scales are read four or two at a time");

    struct RowScales {
        arch::F32x2 value[row_scales][rows / 2];
    };
    struct Factors {
        float value[factors][columns];
    };

    arch::F32x2 sum_[fragments_m][fragments_n][Matrix::registers / 2];
    int         row0_, column0_;

  public:
    template <class Simt> WAVESMITH_DEVICE explicit MmqAccumulators(const Simt & simt)
        : row0_(int(simt.wave()) % Tile::waves_m * fragments_m * Matrix::m), column0_(int(simt.wave()) / Tile::waves_m * fragments_n * Matrix::n) {
        WAVESMITH_UNROLL
        for (int i = 0; i < fragments_m; ++i) {
            WAVESMITH_UNROLL
            for (int j = 0; j < fragments_n; ++j) {
                WAVESMITH_UNROLL
                for (int p = 0; p < Matrix::registers / 2; ++p) {
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

    // `store(row, column, value)` for every element of this lane.
    template <class Simt, class Store> WAVESMITH_DEVICE void store(const Simt & simt, const Store & store) const {
        WAVESMITH_UNROLL
        for (int i = 0; i < fragments_m; ++i) {
            WAVESMITH_UNROLL
            for (int j = 0; j < fragments_n; ++j) {
                WAVESMITH_UNROLL
                for (int r = 0; r < Matrix::registers; ++r) {
                    const arch::F32x2 pair = sum_[i][j][r / 2];
                    store(row0_ + i * Matrix::m + Matrix::row(simt.lane(), r), column0_ + j * Matrix::n + Matrix::column(simt.lane(), r),
                          r % 2 ? arch::second(pair) : arch::first(pair));
                }
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
        WAVESMITH_UNROLL
        for (int i = 0; i < fragments_m; ++i) {
            const int       row    = row0_ + i * Matrix::m;
            const auto      a      = Matrix::load(simt, stage + Lds::weights + row * Lds::row_stride + 32 * step, Lds::row_stride);
            const RowScales scales = load_scales(simt, stage, step, row);
            WAVESMITH_UNROLL
            for (int j = 0; j < fragments_n; ++j) {
                typename Matrix::C sums[Quant::parts];
                start(sums);
                Matrix::template multiply<Quant::parts>(simt, a, b[j], sums);
                scale(scales, column_factors[j], sums, sum_[i][j]);
                if constexpr (Simt::is_checked) {
                    record_sums(simt, row, column0_ + j * Matrix::n, step, sums, record);
                }
            }
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
            const uint32_t address = stage + Lds::scale(step, kind, row + Matrix::first_row_position(simt.lane()));
            WAVESMITH_UNROLL
            for (int p = 0; p < rows / 2; p += 2) {
                if constexpr (rows >= 4) {
                    const Bytes16 four        = simt.template lds_load<Bytes16>(address + 8 * p);
                    scales.value[kind][p]     = arch::pair(bits_to_float(four.word[0]), bits_to_float(four.word[1]));
                    scales.value[kind][p + 1] = arch::pair(bits_to_float(four.word[2]), bits_to_float(four.word[3]));
                } else {
                    const Bytes8 two      = simt.template lds_load<Bytes8>(address);
                    scales.value[kind][p] = arch::pair(bits_to_float(two.word[0]), bits_to_float(two.word[1]));
                }
            }
        }
        return scales;
    }

    template <class Simt> WAVESMITH_DEVICE static Factors load_factors(const Simt & simt, uint32_t stage, int step, int column0) {
        Factors loaded;
        WAVESMITH_UNROLL
        for (int kind = 0; kind < factors; ++kind) {
            WAVESMITH_UNROLL
            for (int c = 0; c < columns; ++c) {
                loaded.value[kind][c] =
                    simt.template lds_load<float>(stage + Lds::factor(step, kind, column0 + Matrix::column(simt.lane(), c * rows)));
            }
        }
        return loaded;
    }

    // The rule of mmq.h, two rows at a time.
    WAVESMITH_DEVICE static void scale(const RowScales & scales, const Factors & column_factors, const typename Matrix::C (&sums)[Quant::parts],
                                       arch::F32x2 (&accumulators)[Matrix::registers / 2]) {
        const arch::F32x2 bias = arch::pair(-sum_bias, -sum_bias);
        WAVESMITH_UNROLL
        for (int p = 0; p < Matrix::registers / 2; ++p) {
            const int         row    = p % (rows / 2);
            const int         column = p / (rows / 2);
            const float       d      = column_factors.value[0][column];
            const arch::F32x2 first  = arch::add(sums_of(sums[0], p), bias);
            arch::F32x2       value  = arch::multiply(scales.value[0][row], first);
            if constexpr (Quant::parts == 2) {
                value = arch::fma(scales.value[1][row], arch::add(sums_of(sums[1], p), bias), value);
            }
            accumulators[p] = arch::fma(arch::pair(d, d), value, accumulators[p]);
            WAVESMITH_UNROLL
            for (int i = 0; i < Quant::minimums; ++i) {
                const float factor = column_factors.value[1 + i][column];
                accumulators[p]    = arch::fma(scales.value[Quant::parts + i][row], arch::pair(factor, factor), accumulators[p]);
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
