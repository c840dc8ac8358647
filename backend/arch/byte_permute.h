// Four bytes picked from eight.
#pragma once

#include "../platform/simt.h"

namespace wavesmith::arch {

// Byte i of the result is byte s of (high:low), s being byte i of `selector` (0-3: low, 4-7: high; no other values).
WAVESMITH_DEVICE uint32_t byte_permute(uint32_t high, uint32_t low, uint32_t selector) {
#if WAVESMITH_DEVICE_COMPILE && defined(__HIP__)
    return __builtin_amdgcn_perm(high, low, selector);
#elif WAVESMITH_DEVICE_COMPILE && !defined(__HIP__)
    // The instruction wants its indices in the nibbles of 16 bits.
    const uint32_t pairs = selector | selector >> 4;
    return __byte_perm(low, high, __byte_perm(pairs, 0, 0x4420));
#else
    const uint64_t bytes  = uint64_t(high) << 32 | low;
    uint32_t       result = 0;
    for (int i = 0; i < 4; i++) {
        result |= uint32_t(bytes >> (8 * ((selector >> (8 * i)) & 7)) & 0xFF) << (8 * i);
    }
    return result;
#endif
}

}  // namespace wavesmith::arch
