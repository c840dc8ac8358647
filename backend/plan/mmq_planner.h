// Chooses the tile plan of a quantised product.
#pragma once

#include "mmq_variants.h"

namespace wavesmith {

// The compiled variants of a weight type; nullptr if mmq does not take it.
const MmqType * mmq_type(int ggml_type);

// The narrowest tile that holds all `columns`, else the widest. `plan` (may be nullptr) names one instead. nullptr: no such plan.
const MmqVariant * choose_mmq_variant(const MmqType & type, Family family, int64_t columns, const char * plan);

// Rows, columns and entries (batch entries or experts) of a product.
struct MmqShape {
    int64_t m, n, entries;
};

// Where the family has measured costs (mmq_costs.inc), the plan that they say takes the least time; else the one for so many
// columns. Only plans whose tile fits `lds_limit` bytes; nullptr if none does.
const MmqVariant * choose_device_variant(const MmqType & type, Family family, const MmqShape & shape, int compute_units, size_t lds_limit);

}  // namespace wavesmith
