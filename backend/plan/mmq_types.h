// The quantised types that mmq takes.
#pragma once

#include "mmq_variants.h"

namespace wavesmith {

// The compiled variants of a weight type; nullptr if mmq does not take it.
const MmqType * mmq_type(int ggml_type);

}  // namespace wavesmith
