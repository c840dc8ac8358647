// Two f32 side by side: one packed instruction on CDNA2 and later (v_pk_fma_f32), a pair that can issue together on RDNA3
// and later, two operations elsewhere. Every operation rounds each element as the scalar one does.
#pragma once

#include "../platform/simt.h"

namespace wavesmith::arch {

#if WAVESMITH_DEVICE_COMPILE && defined(__HIP__)

typedef float F32x2 __attribute__((ext_vector_type(2)));

WAVESMITH_DEVICE F32x2 pair(float a, float b) { return F32x2{ a, b }; }
WAVESMITH_DEVICE float first(F32x2 a) { return a.x; }
WAVESMITH_DEVICE float second(F32x2 a) { return a.y; }
WAVESMITH_DEVICE F32x2 add(F32x2 a, F32x2 b) { return a + b; }
WAVESMITH_DEVICE F32x2 multiply(F32x2 a, F32x2 b) { return a * b; }
WAVESMITH_DEVICE F32x2 fma(F32x2 a, F32x2 b, F32x2 c) { return __builtin_elementwise_fma(a, b, c); }

#else

struct F32x2 {
    float x, y;
};

WAVESMITH_DEVICE F32x2 pair(float a, float b) { return { a, b }; }
WAVESMITH_DEVICE float first(F32x2 a) { return a.x; }
WAVESMITH_DEVICE float second(F32x2 a) { return a.y; }
WAVESMITH_DEVICE F32x2 add(F32x2 a, F32x2 b) { return { a.x + b.x, a.y + b.y }; }
WAVESMITH_DEVICE F32x2 multiply(F32x2 a, F32x2 b) { return { a.x * b.x, a.y * b.y }; }
WAVESMITH_DEVICE F32x2 fma(F32x2 a, F32x2 b, F32x2 c) { return { __builtin_fmaf(a.x, b.x, c.x), __builtin_fmaf(a.y, b.y, c.y) }; }

#endif

}  // namespace wavesmith::arch
