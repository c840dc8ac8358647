// The int8 WMMA instructions of RDNA. RDNA3 and RDNA4 have the same shape with different lane layouts. Neither is
// compiled unless it is used.
#pragma once

#include "matrix_instruction.h"

#if WAVESMITH_DEVICE_COMPILE && defined(__HIP__)
// The flags are the signedness of A and of B and, last, clamp.
#    define WAVESMITH_WMMA_ISSUE(builtin)                                                                                        \
        using Operand     = int32_t __attribute__((ext_vector_type(Layout::operand_bytes / 4)));                                 \
        using Accumulator = int32_t __attribute__((ext_vector_type(Layout::registers)));                                         \
        const Accumulator result = builtin(true, __builtin_bit_cast(Operand, a), true, __builtin_bit_cast(Operand, b),           \
                                           __builtin_bit_cast(Accumulator, c), false);                                           \
        c = __builtin_bit_cast(C, result)
#else
#    define WAVESMITH_WMMA_ISSUE(builtin) (void) a, (void) b, (void) c
#endif

namespace wavesmith::arch {

namespace wmma {

struct I32_16x16x16_Rdna3 {
    using Layout = Rdna3Layout;
    static const char * name() { return "v_wmma_i32_16x16x16_iu8"; }
    template <class A, class B, class C> WAVESMITH_DEVICE static void issue(const A & a, const B & b, C & c) {
        WAVESMITH_WMMA_ISSUE(__builtin_amdgcn_wmma_i32_16x16x16_iu8_w32);
    }
};

struct I32_16x16x16_Rdna4 {
    using Layout = Rdna4Layout;
    static const char * name() { return "v_wmma_i32_16x16x16_iu8"; }
    template <class A, class B, class C> WAVESMITH_DEVICE static void issue(const A & a, const B & b, C & c) {
        WAVESMITH_WMMA_ISSUE(__builtin_amdgcn_wmma_i32_16x16x16_iu8_w32_gfx12);
    }
};

}  // namespace wmma

}  // namespace wavesmith::arch

#undef WAVESMITH_WMMA_ISSUE
