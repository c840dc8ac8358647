// A row of mmq_plans.inc as the choice between rows sees it.
#pragma once

#include <stdint.h>

#include "../arch/arch.h"

namespace wavesmith {

struct MmqRow {
    Family       family;
    const char * plan;  // "tile_m x tile_n" without blanks
    int          tile_m, tile_n;
    uint32_t     lds_bytes;  // of a workgroup, for the type at hand
};

// Rows of the tallest tile in the table.
constexpr int tallest_mmq_tile() {
    int tallest = 0;
#define MMQ_PLAN(architecture, parts, tile_m, tile_n, waves_m, waves_n, stages, host) tallest = tile_m > tallest ? tile_m : tallest;
#include "mmq_plans.inc"
#undef MMQ_PLAN
    return tallest;
}

}  // namespace wavesmith
