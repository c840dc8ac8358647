// The int8 MFMA instructions of CDNA. A family uses those that its targets have; none is compiled unless it is used.
#pragma once

#include "matrix_instruction.h"

#if WAVESMITH_DEVICE_COMPILE && defined(__HIP__)
// `operand` is the type that the builtin takes for A and B. The last three operands are cbsz, abid and blgp: no broadcast.
#    define WAVESMITH_MFMA_ISSUE(builtin, operand)                                                                      \
        using Operand     = operand;                                                                                    \
        using Accumulator = int32_t __attribute__((ext_vector_type(Layout::registers)));                                \
        const Accumulator result =                                                                                      \
            builtin(__builtin_bit_cast(Operand, a), __builtin_bit_cast(Operand, b), __builtin_bit_cast(Accumulator, c), 0, 0, 0); \
        c = __builtin_bit_cast(C, result)
#else
#    define WAVESMITH_MFMA_ISSUE(builtin, operand) (void) a, (void) b, (void) c
#endif

namespace wavesmith::arch {

namespace mfma {

#if WAVESMITH_DEVICE_COMPILE && defined(__HIP__)
using Word4 = int32_t __attribute__((ext_vector_type(4)));
#endif

struct I32_16x16x16 {
    using Layout = Mfma16Layout<16>;
    static const char * name() { return "v_mfma_i32_16x16x16i8"; }
    template <class A, class B, class C> WAVESMITH_DEVICE static void issue(const A & a, const B & b, C & c) {
        WAVESMITH_MFMA_ISSUE(__builtin_amdgcn_mfma_i32_16x16x16i8, int32_t);
    }
};

struct I32_32x32x8 {
    using Layout = Mfma32Layout<8>;
    static const char * name() { return "v_mfma_i32_32x32x8i8"; }
    template <class A, class B, class C> WAVESMITH_DEVICE static void issue(const A & a, const B & b, C & c) {
        WAVESMITH_MFMA_ISSUE(__builtin_amdgcn_mfma_i32_32x32x8i8, int32_t);
    }
};

struct I32_16x16x32 {
    using Layout = Mfma16Layout<32>;
    static const char * name() { return "v_mfma_i32_16x16x32_i8"; }
    template <class A, class B, class C> WAVESMITH_DEVICE static void issue(const A & a, const B & b, C & c) {
        WAVESMITH_MFMA_ISSUE(__builtin_amdgcn_mfma_i32_16x16x32_i8, int64_t);
    }
};

struct I32_32x32x16 {
    using Layout = Mfma32Layout<16>;
    static const char * name() { return "v_mfma_i32_32x32x16_i8"; }
    template <class A, class B, class C> WAVESMITH_DEVICE static void issue(const A & a, const B & b, C & c) {
        WAVESMITH_MFMA_ISSUE(__builtin_amdgcn_mfma_i32_32x32x16_i8, int64_t);
    }
};

struct I32_16x16x64 {
    using Layout = Mfma16Layout<64>;
    static const char * name() { return "v_mfma_i32_16x16x64_i8"; }
    template <class A, class B, class C> WAVESMITH_DEVICE static void issue(const A & a, const B & b, C & c) {
        WAVESMITH_MFMA_ISSUE(__builtin_amdgcn_mfma_i32_16x16x64_i8, Word4);
    }
};

struct I32_32x32x32 {
    using Layout = Mfma32Layout<32>;
    static const char * name() { return "v_mfma_i32_32x32x32_i8"; }
    template <class A, class B, class C> WAVESMITH_DEVICE static void issue(const A & a, const B & b, C & c) {
        WAVESMITH_MFMA_ISSUE(__builtin_amdgcn_mfma_i32_32x32x32_i8, Word4);
    }
};

}  // namespace mfma

}  // namespace wavesmith::arch

#undef WAVESMITH_MFMA_ISSUE
