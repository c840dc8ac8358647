// Chooses the tile plan of a quantised product: the only place that decides it. A pure function of the rows (of one type), the
// family, the sizes and the LDS limit.
//
// A tile costs its rows times its columns, whether the output has them or not, and its weights are loaded and unpacked once per
// tile: about the cost of `mmq_staging_columns` more columns. The cheapest cover of the output wins; of equal ones the largest tile,
// then the first row. tools/wavesmith/kernels/planner.py follows the same rule to find rows that nothing would ever choose.
#pragma once

#include <string.h>

#include "mmq_row.h"

namespace wavesmith {

struct MmqSizes {
    int64_t m, n, k;  // n: columns of a batch entry, or of the fullest expert
};

constexpr int mmq_staging_columns = 16;

inline double mmq_cost(const MmqRow & row, const MmqSizes & sizes) {
    const double rows    = double((sizes.m + row.tile_m - 1) / row.tile_m * row.tile_m);
    const double columns = double((sizes.n + row.tile_n - 1) / row.tile_n) * double(row.tile_n + mmq_staging_columns);
    return rows * columns;
}

inline bool is_better_mmq_row(const MmqRow & row, const MmqRow & best, const MmqSizes & sizes) {
    const double cost = mmq_cost(row, sizes), best_cost = mmq_cost(best, sizes);
    return cost != best_cost ? cost < best_cost : row.tile_m * row.tile_n > best.tile_m * best.tile_n;
}

// The best row within the limit. nullptr: none fits. `Rows` holds objects of a class derived from MmqRow.
template <class Rows> auto choose_mmq(const Rows & rows, Family family, const MmqSizes & sizes, uint32_t lds_limit) -> const typename Rows::value_type * {
    const typename Rows::value_type * best = nullptr;
    for (const auto & row : rows) {
        if (row.family == family && row.lds_bytes <= lds_limit && (!best || is_better_mmq_row(row, *best, sizes))) {
            best = &row;
        }
    }
    return best;
}

// LDS of the row that needs least of it; UINT32_MAX where the family has none.
template <class Rows> uint32_t least_mmq_lds(const Rows & rows, Family family) {
    uint32_t least = UINT32_MAX;
    for (const auto & row : rows) {
        least = row.family == family && row.lds_bytes < least ? row.lds_bytes : least;
    }
    return least;
}

// The row with this plan, whatever the limit. nullptr: no such plan.
template <class Rows> auto find_mmq(const Rows & rows, Family family, const char * plan) -> const typename Rows::value_type * {
    for (const auto & row : rows) {
        if (row.family == family && strcmp(row.plan, plan) == 0) {
            return &row;
        }
    }
    return nullptr;
}

}  // namespace wavesmith
