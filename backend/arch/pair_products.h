// Vectors of int32 whose elements hold two int16: the CPU's own multiply-add of such pairs, for matrix_model.h.
#pragma once

#include <stdint.h>

#if defined(__AVX2__) || defined(__AVX512BW__)
#    include <immintrin.h>
#elif defined(__SSE2__)
#    include <emmintrin.h>
#endif

namespace wavesmith::arch {

#if defined(__AVX512BW__)
constexpr int pair_lanes = 16;
#elif defined(__AVX2__)
constexpr int pair_lanes = 8;
#else
constexpr int pair_lanes = 4;
#endif

typedef int32_t PairVector __attribute__((vector_size(4 * pair_lanes)));
typedef int16_t PairHalves __attribute__((vector_size(4 * pair_lanes)));

// sum + a.low * b.low + a.high * b.high in each element.
inline PairVector multiply_add_pairs(PairVector a, PairVector b, PairVector sum) {
#if defined(__AVX512BW__) && defined(__AVX512VNNI__)
    return (PairVector) _mm512_dpwssd_epi32((__m512i) sum, (__m512i) a, (__m512i) b);
#elif defined(__AVX512BW__)
    return sum + (PairVector) _mm512_madd_epi16((__m512i) a, (__m512i) b);
#elif defined(__AVX2__)
    return sum + (PairVector) _mm256_madd_epi16((__m256i) a, (__m256i) b);
#elif defined(__SSE2__)
    return sum + (PairVector) _mm_madd_epi16((__m128i) a, (__m128i) b);
#else
    return sum + ((a << 16) >> 16) * ((b << 16) >> 16) + (a >> 16) * (b >> 16);
#endif
}

// Of elements that hold four signed bytes: bytes 0 and 2, or 1 and 3, as two int16.
inline PairVector even_bytes(PairVector words) {
    return (PairVector) ((PairHalves) ((PairHalves) words << 8) >> 8);
}
inline PairVector odd_bytes(PairVector words) {
    return (PairVector) ((PairHalves) words >> 8);
}

}  // namespace wavesmith::arch
