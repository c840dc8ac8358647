// The int8 matrix instructions on the CPU: one call computes for all lanes of a wave what the instruction does, through
// the instruction's lane layout. This is the innermost loop of the host target.
#pragma once

#include <string.h>

#include "lane_layout.h"
#include "pair_products.h"

// Loops over vectors must be unrolled whole, or the sums would live in memory.
#if defined(__clang__)
#    define WAVESMITH_UNROLL_WHOLE _Pragma("unroll")
#else
#    define WAVESMITH_UNROLL_WHOLE _Pragma("GCC unroll 16")
#endif

namespace wavesmith::arch {

// A matrix of n rows by k bytes as vectors along the rows, four k apart, split into even and odd bytes.
template <int n, int k> struct RowVectors {
    PairVector even[k / 4][n / pair_lanes];
    PairVector odd[k / 4][n / pair_lanes];
};

// A matrix of n rows by k bytes, row by row, split likewise: element [row][i] is to be broadcast.
template <int n, int k> struct RowScalars {
    alignas(64) int32_t even[n][k / 4];
    alignas(64) int32_t odd[n][k / 4];
};

// A from the lanes' registers. Rows come in the order in which the lanes' result registers hold them (slot = group *
// registers + register), so that a lane's results will be neighbours.
template <class Layout> inline void gather_a(const LaneOperands * const * lanes, RowVectors<Layout::n, Layout::k> & a) {
    constexpr int n     = Layout::n;
    constexpr int words = Layout::operand_bytes / 4;
    alignas(64) int32_t by_slot[Layout::k / 4][n];
    for (int chunk = 0; chunk < Layout::k / Layout::operand_bytes; chunk++) {
        for (int slot = 0; slot < n; slot++) {
            const int lane = chunk * n + Layout::group_row(slot / Layout::registers, slot % Layout::registers);
            int32_t   own[words];
            memcpy(own, lanes[lane]->a, sizeof(own));
            WAVESMITH_UNROLL_WHOLE
            for (int w = 0; w < words; w++) {
                by_slot[Layout::operand_k(uint32_t(lane)) / 4 + w][slot] = own[w];
            }
        }
    }
    for (int w = 0; w < Layout::k / 4; w++) {
        for (int v = 0; v < n / pair_lanes; v++) {
            PairVector bytes;
            memcpy(&bytes, by_slot[w] + v * pair_lanes, sizeof(bytes));
            a.even[w][v] = even_bytes(bytes);
            a.odd[w][v]  = odd_bytes(bytes);
        }
    }
}

// B from the lanes' registers.
template <class Layout> inline void gather_b(const LaneOperands * const * lanes, RowScalars<Layout::n, Layout::k> & b) {
    constexpr int n     = Layout::n;
    constexpr int words = n * Layout::k / 4;
    alignas(64) int32_t by_row[words];
    for (int lane = 0; lane < Layout::k / Layout::operand_bytes * n; lane++) {
        const int first = (Layout::operand_row(uint32_t(lane)) * Layout::k + Layout::operand_k(uint32_t(lane))) / 4;
        memcpy(by_row + first, lanes[lane]->b, Layout::operand_bytes);
    }
    for (int w = 0; w < words; w += pair_lanes) {
        PairVector bytes;
        memcpy(&bytes, by_row + w, sizeof(bytes));
        const PairVector even = even_bytes(bytes);
        const PairVector odd  = odd_bytes(bytes);
        memcpy(&b.even[0][0] + w, &even, sizeof(even));
        memcpy(&b.odd[0][0] + w, &odd, sizeof(odd));
    }
}

// `count` int32 results added into memory. Wraps like the hardware.
template <int count> inline void add_results(int32_t * results, const int32_t * sums) {
    constexpr int width = count < pair_lanes ? count : pair_lanes;
    typedef uint32_t Vector __attribute__((vector_size(4 * width)));
    WAVESMITH_UNROLL_WHOLE
    for (int i = 0; i < count; i += width) {
        Vector result;
        Vector sum;
        memcpy(&result, results + i, sizeof(result));
        memcpy(&sum, sums + i, sizeof(sum));
        result += sum;
        memcpy(results + i, &result, sizeof(result));
    }
}

// Adds a column's sums, in slot order, to the registers of the lanes that own the column.
template <class Layout> inline void scatter_column(const LaneOperands * const * lanes, int column, const PairVector * sums) {
    alignas(64) int32_t by_slot[Layout::n];
    memcpy(by_slot, sums, sizeof(by_slot));
    WAVESMITH_UNROLL_WHOLE
    for (int group = 0; group < Layout::wave_size / Layout::n; group++) {
        add_results<Layout::registers>(lanes[group * Layout::n + column]->c, by_slot + group * Layout::registers);
    }
}

// operands[l] points to the LaneOperands of lane l. int16 pair products are exact, and k of them far from overflow.
template <class Layout> void multiply_accumulate_lanes(void * const * operands) {
    constexpr int n       = Layout::n;
    constexpr int k       = Layout::k;
    constexpr int vectors = n / pair_lanes;
    constexpr int columns = 4 / vectors < 1 ? 1 : 4 / vectors;  // side by side, to have enough independent sums
    static_assert(n % pair_lanes == 0 && n * k / 4 % pair_lanes == 0, "whole vectors");

    const LaneOperands * lanes[Layout::wave_size];
    for (int l = 0; l < Layout::wave_size; l++) {
        lanes[l] = static_cast<const LaneOperands *>(operands[l]);
    }
    RowVectors<n, k> a;
    RowScalars<n, k> b;
    gather_a<Layout>(lanes, a);
    gather_b<Layout>(lanes, b);

    for (int column0 = 0; column0 < n; column0 += columns) {
        PairVector sum[columns][vectors] = {};
        WAVESMITH_UNROLL_WHOLE
        for (int w = 0; w < k / 4; w++) {
            WAVESMITH_UNROLL_WHOLE
            for (int j = 0; j < columns; j++) {
                const PairVector even = b.even[column0 + j][w] - PairVector{};  // in every element
                const PairVector odd  = b.odd[column0 + j][w] - PairVector{};
                WAVESMITH_UNROLL_WHOLE
                for (int v = 0; v < vectors; v++) {
                    sum[j][v] = multiply_add_pairs(a.even[w][v], even, sum[j][v]);
                    sum[j][v] = multiply_add_pairs(a.odd[w][v], odd, sum[j][v]);
                }
            }
        }
        WAVESMITH_UNROLL_WHOLE
        for (int j = 0; j < columns; j++) {
            scatter_column<Layout>(lanes, column0 + j, sum[j]);
        }
    }
}

}  // namespace wavesmith::arch

#undef WAVESMITH_UNROLL_WHOLE
