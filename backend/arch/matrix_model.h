// The int8 matrix instructions on the CPU: one call computes for all lanes of a wave what the instruction does, through
// the instruction's lane layout. This is the innermost loop of the host target, so it is written for the vectoriser.
#pragma once

#include <string.h>

#include "lane_layout.h"

namespace wavesmith::arch {

// A multiply-add on floats that hold small integers: exact, fused or not.
inline float multiply_add_exactly(float a, float b, float c) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

// The four signed bytes of each word as floats, value[byte][i].
template <int count> inline void split_bytes(const int32_t (&word)[count], float (*value)[count]) {
    for (int i = 0; i < count; i++) {
        value[0][i] = float(int32_t(uint32_t(word[i]) << 24) >> 24);
        value[1][i] = float(int32_t(uint32_t(word[i]) << 16) >> 24);
        value[2][i] = float(int32_t(uint32_t(word[i]) << 8) >> 24);
        value[3][i] = float(word[i] >> 24);
    }
}

// lanes[l] points to the LaneOperands of lane l.
//
// Sums are taken in float, where they are exact: k products of at most 2^14 stay below 2^24 for k up to 1023. Rows of C
// are computed in the order in which the lanes' registers hold them, so that a lane's results are neighbours; that puts
// rows into the vector and columns into the outer loop.
template <class Layout> void multiply_accumulate_lanes(void * const * lanes) {
    constexpr int n         = Layout::n;
    constexpr int k         = Layout::k;
    constexpr int registers = Layout::registers;
    constexpr int bytes     = Layout::operand_bytes;
    static_assert(k <= 1023 && bytes % 4 == 0 && registers * Layout::wave_size == n * n, "what the loops below rely on");

    const LaneOperands * operands[Layout::wave_size];
    for (int l = 0; l < Layout::wave_size; l++) {
        operands[l] = static_cast<const LaneOperands *>(lanes[l]);
    }

    alignas(64) int32_t a_words[k / 4][n];  // four k each, rows in the order of the result registers
    for (int chunk = 0; chunk < k / bytes; chunk++) {
        for (int slot = 0; slot < n; slot++) {
            const int lane = chunk * n + Layout::group_row(slot / registers, slot % registers);
            int32_t   words[bytes / 4];
            memcpy(words, operands[lane]->a, bytes);
            for (int w = 0; w < bytes / 4; w++) {
                a_words[Layout::operand_k(uint32_t(lane)) / 4 + w][slot] = words[w];
            }
        }
    }
    alignas(64) float a[k][n];
    for (int w = 0; w < k / 4; w++) {
        split_bytes(a_words[w], a + 4 * w);
    }

    alignas(64) int8_t b_bytes[n][k];
    for (int lane = 0; lane < k / bytes * n; lane++) {
        memcpy(b_bytes[Layout::operand_row(uint32_t(lane))] + Layout::operand_k(uint32_t(lane)), operands[lane]->b, bytes);
    }
    alignas(64) float b[n][k];
    for (int column = 0; column < n; column++) {
        for (int i = 0; i < k; i++) {
            b[column][i] = float(b_bytes[column][i]);
        }
    }

    constexpr int columns = 4;  // computed side by side, to have enough independent sums
    for (int column0 = 0; column0 < n; column0 += columns) {
        alignas(64) float sum[columns][n] = {};
        for (int i = 0; i < k; i++) {
            for (int j = 0; j < columns; j++) {
                for (int slot = 0; slot < n; slot++) {
                    sum[j][slot] = multiply_add_exactly(a[i][slot], b[column0 + j][i], sum[j][slot]);
                }
            }
        }
        for (int j = 0; j < columns; j++) {
            for (int group = 0; group < Layout::wave_size / n; group++) {
                int32_t * c = operands[group * n + column0 + j]->c;
                for (int r = 0; r < registers; r++) {
                    // Wraps like the hardware.
                    c[r] = int32_t(uint32_t(c[r]) + uint32_t(int32_t(sum[j][group * registers + r])));
                }
            }
        }
    }
}

}  // namespace wavesmith::arch
