// Number of bits that are set.
#pragma once

#include "../platform/simt.h"

namespace wavesmith::arch {

WAVESMITH_DEVICE uint32_t bit_count(uint32_t bits) {
#if WAVESMITH_DEVICE_COMPILE && !defined(__HIP__)
    return uint32_t(__popc(int(bits)));
#else
    return uint32_t(__builtin_popcount(bits));
#endif
}

}  // namespace wavesmith::arch
