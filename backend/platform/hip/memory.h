// Loads and stores of a GPU's global memory and LDS as single accesses of the wanted width and alignment.
#pragma once

#include "../simt.h"

// Everything here exists in HIP's compilation for the CPU too, which parses kernels, but is called on a GPU only.
#if defined(__HIP__)

#    define WAVESMITH_GLOBAL __attribute__((address_space(1)))
#    define WAVESMITH_LDS __attribute__((address_space(3)))
#    define WAVESMITH_DEVICE_ONLY __attribute__((device)) __attribute__((always_inline))

namespace wavesmith::hip {

// What one access of `bytes` moves. Other sizes are moved in parts of `unit` bytes.
template <int bytes> struct AccessBits;
template <> struct AccessBits<1> {
    using Type = uint8_t;
};
template <> struct AccessBits<2> {
    using Type = uint16_t;
};
template <> struct AccessBits<4> {
    using Type = uint32_t;
};
template <> struct AccessBits<8> {
    using Type = uint32_t __attribute__((ext_vector_type(2)));
};
template <> struct AccessBits<16> {
    using Type = uint32_t __attribute__((ext_vector_type(4)));
};

// How a T at an address aligned to `align` bytes is moved: `count` accesses of type Typed, which may alias any type.
template <class T, int align> struct Access {
    static constexpr bool is_one = sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16;
    static constexpr int  unit   = is_one ? int(sizeof(T)) : sizeof(T) % 4 == 0 ? 4 : sizeof(T) % 2 == 0 ? 2 : 1;
    static constexpr int  count  = int(sizeof(T)) / unit;
    using Bits                   = typename AccessBits<unit>::Type;
    typedef Bits Typed __attribute__((aligned(align < unit ? align : unit), may_alias));

    struct Parts {
        Bits part[count];
    };
};

// Kernels hold generic pointers; that these point to global memory is known here only.
template <class T, int align> WAVESMITH_DEVICE_ONLY static T load_global(const void * address) {
    using A                                             = Access<T, align>;
    const WAVESMITH_GLOBAL typename A::Typed * const from = (const WAVESMITH_GLOBAL typename A::Typed *) address;
    typename A::Parts                            parts;
    WAVESMITH_UNROLL
    for (int i = 0; i < A::count; i++) {
        parts.part[i] = from[i];
    }
    return __builtin_bit_cast(T, parts);
}

template <class T, int align> WAVESMITH_DEVICE_ONLY static void store_global(void * address, T value) {
    using A                                       = Access<T, align>;
    WAVESMITH_GLOBAL typename A::Typed * const to    = (WAVESMITH_GLOBAL typename A::Typed *) address;
    const typename A::Parts                parts = __builtin_bit_cast(typename A::Parts, value);
    WAVESMITH_UNROLL
    for (int i = 0; i < A::count; i++) {
        to[i] = parts.part[i];
    }
}

template <class T> WAVESMITH_DEVICE_ONLY static T load_lds(const WAVESMITH_LDS void * address) {
    using A                                          = Access<T, alignof(T)>;
    const WAVESMITH_LDS typename A::Typed * const from = (const WAVESMITH_LDS typename A::Typed *) address;
    typename A::Parts                         parts;
    WAVESMITH_UNROLL
    for (int i = 0; i < A::count; i++) {
        parts.part[i] = from[i];
    }
    return __builtin_bit_cast(T, parts);
}

template <class T> WAVESMITH_DEVICE_ONLY static void store_lds(WAVESMITH_LDS void * address, T value) {
    using A                                    = Access<T, alignof(T)>;
    WAVESMITH_LDS typename A::Typed * const to    = (WAVESMITH_LDS typename A::Typed *) address;
    const typename A::Parts             parts = __builtin_bit_cast(typename A::Parts, value);
    WAVESMITH_UNROLL
    for (int i = 0; i < A::count; i++) {
        to[i] = parts.part[i];
    }
}

}  // namespace wavesmith::hip

#endif
