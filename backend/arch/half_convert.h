// Conversions between binary16 and binary32 on NVIDIA GPUs; elsewhere the compiler has a type for it, or half.h computes it.
#pragma once

#include "../platform/simt.h"

#if WAVESMITH_DEVICE_COMPILE && !defined(__HIP__)

namespace wavesmith::arch {

WAVESMITH_DEVICE float float_of_half(uint16_t half) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
    return value;
}

// Rounds to nearest, ties to even.
WAVESMITH_DEVICE uint16_t half_of_float(float value) {
    uint16_t half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
    return half;
}

}  // namespace wavesmith::arch

#endif
