// IEEE binary16 and bfloat16 as bits, the same result on every platform.
#pragma once

#include "../../arch/half_convert.h"
#include "../../platform/simt.h"

namespace wavesmith {

WAVESMITH_DEVICE float bits_to_float(uint32_t bits) {
    float value;
    __builtin_memcpy(&value, &bits, sizeof(value));
    return value;
}

WAVESMITH_DEVICE uint32_t float_to_bits(float value) {
    uint32_t bits;
    __builtin_memcpy(&bits, &value, sizeof(bits));
    return bits;
}

WAVESMITH_DEVICE float bfloat16_to_float(uint16_t value) {
    return bits_to_float(uint32_t(value) << 16);
}

#if defined(WAVESMITH_DEVICE_COMPILE) && defined(__HIP__)

WAVESMITH_DEVICE float half_to_float(uint16_t half) {
    _Float16 value;
    __builtin_memcpy(&value, &half, sizeof(value));
    return float(value);
}

WAVESMITH_DEVICE uint16_t float_to_half(float value) {
    const _Float16 half = _Float16(value);
    uint16_t bits;
    __builtin_memcpy(&bits, &half, sizeof(bits));
    return bits;
}

#elif defined(WAVESMITH_DEVICE_COMPILE) && !defined(__HIP__)

WAVESMITH_DEVICE float half_to_float(uint16_t half) {
    return arch::float_of_half(half);
}

WAVESMITH_DEVICE uint16_t float_to_half(float value) {
    return arch::half_of_float(value);
}

#else

WAVESMITH_DEVICE float half_to_float(uint16_t half) {
    const uint32_t sign     = uint32_t(half & 0x8000) << 16;
    const uint32_t exponent = (half >> 10) & 0x1F;
    const uint32_t mantissa = half & 0x3FF;
    if (exponent == 0) {  // zero and subnormals: mantissa * 2^-24, exact in f32
        return bits_to_float(sign | float_to_bits(float(mantissa) * 0x1p-24f));
    }
    if (exponent == 31) {
        return bits_to_float(sign | 0x7F800000u | (mantissa << 13));
    }
    return bits_to_float(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

// Rounds to nearest, ties to even; values past the range become infinite.
WAVESMITH_DEVICE uint16_t float_to_half(float value) {
    const uint32_t bits      = float_to_bits(value);
    const uint16_t sign      = uint16_t((bits >> 16) & 0x8000);
    const uint32_t magnitude = bits & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u) {
        return uint16_t(sign | 0x7E00);
    }
    if (magnitude >= 0x477FF000u) {  // 65520 and more round past 65504
        return uint16_t(sign | 0x7C00);
    }
    if (magnitude < 0x38800000u) {  // below 2^-14: adding 0.5 leaves the rounded multiple of 2^-24 in the low bits
        return uint16_t(sign | (float_to_bits(bits_to_float(magnitude) + 0.5f) - 0x3F000000u));
    }
    const uint32_t odd = (magnitude >> 13) & 1;
    return uint16_t(sign | ((magnitude - 0x38000000u + 0xFFF + odd) >> 13));
}

#endif

}  // namespace wavesmith
