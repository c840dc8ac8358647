// The matrix step (matrix_step.h) of families without matrix instructions, made of dot4.
//
// The lanes form wave_size / 4 row groups by 4 column groups; each owns 4 rows and 4 columns:
//     row    = lane % (wave_size / 4) + (wave_size / 4) * i,    i = 0 … 3
//     column = lane / (wave_size / 4) + 4 * j,                  j = 0 … 3
// so C is wave_size x 16, and lanes exchange nothing. Result register r is i = r % 4, j = r / 4.
#pragma once

#include "../platform/simt.h"

namespace wavesmith::arch {

template <class Arch> struct Dot4Step {
    static constexpr int row_groups       = int(Arch::wave_size) / 4;
    static constexpr int m                = 4 * row_groups;
    static constexpr int n                = 16;
    static constexpr int registers        = 16;
    static constexpr int rows_per_lane    = 4;
    static constexpr int columns_per_lane = 4;
    static constexpr bool dual_issue      = false;
    static constexpr bool folds_bias      = false;
    static constexpr bool runs_beside_vector = false;

    // Where the rows lie: 4 rows of 32 bytes would take too many registers to be held for several products.
    struct Operand {
        uint32_t lds_offset;
        uint32_t row_stride;
    };
    struct C {
        int32_t value[registers];
    };

    static constexpr int run(int parts) { return 32 / parts; }
    static constexpr int place(int, int k) { return k; }

    template <class Simt> WAVESMITH_DEVICE static Operand load(const Simt &, uint32_t lds_offset, uint32_t row_stride) {
        return { lds_offset, row_stride };
    }

    template <int parts, class Simt> WAVESMITH_DEVICE static void multiply(const Simt & simt, const Operand & a, const Operand & b, C (&c)[parts]) {
        static_assert(Simt::wave_size == Arch::wave_size, "the family's wave size");
        WAVESMITH_UNROLL
        for (int half = 0; half < 2; half++) {
            Bytes16 rows[4], columns[4];
            WAVESMITH_UNROLL
            for (int i = 0; i < 4; i++) {
                rows[i]    = simt.template lds_load<Bytes16>(a.lds_offset + uint32_t(row(simt.lane(), i)) * a.row_stride + 16 * half);
                columns[i] = simt.template lds_load<Bytes16>(b.lds_offset + uint32_t(column(simt.lane(), 4 * i)) * b.row_stride + 16 * half);
            }
            WAVESMITH_UNROLL
            for (int r = 0; r < registers; r++) {
                int32_t & sum = c[half * (parts - 1)].value[r];
                WAVESMITH_UNROLL
                for (int word = 0; word < 4; word++) {
                    sum = Arch::dot4(simt, int32_t(rows[r % 4].word[word]), int32_t(columns[r / 4].word[word]), sum);
                }
            }
        }
    }

    WAVESMITH_DEVICE static constexpr int row(uint32_t lane, int r) { return int(lane) % row_groups + row_groups * (r % 4); }
    WAVESMITH_DEVICE static constexpr int column(uint32_t lane, int r) { return int(lane) / row_groups + 4 * (r / 4); }
    WAVESMITH_DEVICE static constexpr int row_position(int row) { return row % row_groups * 4 + row / row_groups; }
    WAVESMITH_DEVICE static constexpr int first_row_position(uint32_t lane) { return int(lane) % row_groups * 4; }
};

}  // namespace wavesmith::arch
