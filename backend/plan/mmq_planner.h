// Chooses the tile plan of a quantised product.
#pragma once

#include "mmq_variants.h"

namespace wavesmith {

// The compiled variants of a weight type; nullptr if mmq does not take it.
const MmqType * mmq_type(int ggml_type);

// The narrowest tile that holds all `columns`, else the widest. `plan` (may be nullptr) names one instead. nullptr: no such plan.
const MmqVariant * choose_mmq_variant(const MmqType & type, Family family, int64_t columns, const char * plan);

}  // namespace wavesmith
