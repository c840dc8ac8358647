// Chooses the tile plan of a quantised product on a GPU.
#pragma once

#include "mmq_choice.h"
#include "mmq_variants.h"

namespace wavesmith {

// Where the family has measured costs (mmq_costs.inc), the plan that they say takes the least time for all `entries` (batch entries
// or experts) together; else choose_mmq's. Only plans whose tile fits `lds_limit` bytes; nullptr if none does.
const MmqVariant * choose_device_variant(const MmqType & type, Family family, const MmqSizes & sizes, int64_t entries, int compute_units,
                                         uint32_t lds_limit);

}  // namespace wavesmith
