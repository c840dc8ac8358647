// The sum of four int8 products.
#pragma once

#include "../platform/simt.h"

namespace wavesmith::arch {

#if !WAVESMITH_DEVICE_COMPILE
// On the CPU: a and b hold four signed bytes each. Wraps like the hardware.
WAVESMITH_DEVICE static int32_t dot4_of_bytes(int32_t a, int32_t b, int32_t accumulator) {
    uint32_t sum = uint32_t(accumulator);
    for (int shift = 0; shift < 32; shift += 8) {
        sum += uint32_t(int32_t(int8_t(uint32_t(a) >> shift)) * int32_t(int8_t(uint32_t(b) >> shift)));
    }
    return int32_t(sum);
}
#endif

// v_dot4_i32_i8: gfx906, CDNA, RDNA2. The last operand is clamp.
template <class Simt> WAVESMITH_DEVICE static int32_t signed_dot4(const Simt &, int32_t a, int32_t b, int32_t accumulator) {
#if WAVESMITH_DEVICE_COMPILE && defined(__HIP__)
    return __builtin_amdgcn_sdot4(a, b, accumulator, false);
#elif WAVESMITH_DEVICE_COMPILE
    return __dp4a(a, b, accumulator);
#else
    return dot4_of_bytes(a, b, accumulator);
#endif
}

// v_dot4_i32_iu8: RDNA3 and later, where each operand says whether it is signed.
template <class Simt> WAVESMITH_DEVICE static int32_t mixed_sign_dot4(const Simt &, int32_t a, int32_t b, int32_t accumulator) {
#if WAVESMITH_DEVICE_COMPILE && defined(__HIP__)
    return __builtin_amdgcn_sudot4(true, a, true, b, accumulator, false);
#elif WAVESMITH_DEVICE_COMPILE
    return __dp4a(a, b, accumulator);
#else
    return dot4_of_bytes(a, b, accumulator);
#endif
}

}  // namespace wavesmith::arch
