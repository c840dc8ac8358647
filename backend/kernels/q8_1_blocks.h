// Blocks of 128 activations quantised to int8, as quantize_q8_1 writes them and mmq reads them.
//
// A quantised matrix of N rows of K values is an array [ceil(K / 128)][N] of blocks; values past K are zero.
// d4, ds4 and d2s6 are stock's three layouts (block_q8_1_mmq in ggml/src/ggml-cuda/mmq.cuh), 144 bytes each:
//     d4    f32 scale per 32 values
//     ds4   f16 scale and f16 sum of the 32 unquantised values, per 32 values
//     d2s6  f16 scale per 64 values (2), then f16 sums of 16 unquantised values for the first 96 values (6)
// d4s8 and d2s8 are what our own mmq reads, 160 bytes each:
//     d4s8  f32 scale per 32 values (4), then int16 sums of 16 quantised values (8)
//     d2s8  the same with one scale per 64 values, written twice
// Sums of the quantised values are exact integers: they cannot leave f16's range, and they take part in the product with
// the same rounding as the weights' integers, which lowers the error of types with a minimum.
#pragma once

#include "../platform/simt.h"

namespace wavesmith {

enum class Q8_1Layout : int { d4, ds4, d2s6, d4s8, d2s8 };

constexpr int q8_1_block_values = 128;

constexpr int q8_1_header_bytes(Q8_1Layout layout) {
    return layout == Q8_1Layout::d4s8 || layout == Q8_1Layout::d2s8 ? 32 : 16;
}

constexpr int q8_1_block_bytes(Q8_1Layout layout) {
    return q8_1_header_bytes(layout) + q8_1_block_values;
}

}  // namespace wavesmith
