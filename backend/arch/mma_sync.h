// NVIDIA's warp-wide int8 matrix instructions, mma.sync.m16n8k32 and .m16n8k16, and the matrix step (matrix_step.h) made of them.
//
// With g = lane / 4 and t = lane % 4, word w of a lane's operands is four values of K:
//     A     word w: row g + 8 * (w % 2), values 4 * t + 16 * (w / 2) …
//     B     word w: column g,            values 4 * t + 16 * w …
//     C     register r: row g + 8 * (r / 2), column 2 * t + r % 2
// Source: the PTX instruction set's fragment tables for .s8 operands.
#pragma once

#include <string.h>

#include "../platform/simt.h"
#include "lane_layout.h"

namespace wavesmith::arch {

namespace mma_sync {

// What the instruction does, on the CPU, for all lanes at once.
template <int depth> struct Model {
    static const char * name() { return depth == 32 ? "mma.sync.m16n8k32" : "mma.sync.m16n8k16"; }
    static int          faulty_lane(void * const *) { return -1; }
    static const char * fault() { return ""; }

    static void compute(void * const * operands) {
        int16_t a[16][depth], b[8][depth];
        for (int lane = 0; lane < 32; lane++) {
            const LaneOperands & own = *static_cast<const LaneOperands *>(operands[lane]);
            for (int word = 0; word < depth / 8; word++) {
                spread(own.a, word, a[lane / 4 + 8 * (word % 2)] + 4 * (lane % 4) + 16 * (word / 2));
            }
            for (int word = 0; word < depth / 16; word++) {
                spread(own.b, word, b[lane / 4] + 4 * (lane % 4) + 16 * word);
            }
        }
        for (int lane = 0; lane < 32; lane++) {
            const LaneOperands & own = *static_cast<const LaneOperands *>(operands[lane]);
            for (int r = 0; r < 4; r++) {
                int32_t sum = 0;
                for (int k = 0; k < depth; k++) {
                    sum += int32_t(a[lane / 4 + 8 * (r / 2)][k]) * b[2 * (lane % 4) + r % 2][k];
                }
                own.c[r] = int32_t(uint32_t(own.c[r]) + uint32_t(sum));
            }
        }
    }

  private:
    static void spread(const void * words, int word, int16_t * values) {
        int8_t bytes[4];
        memcpy(bytes, static_cast<const char *>(words) + 4 * word, 4);
        for (int i = 0; i < 4; i++) {
            values[i] = bytes[i];
        }
    }
};

// `a` holds depth / 8 words, `b` depth / 16, `c` four sums.
template <int depth, class Simt> WAVESMITH_DEVICE static void issue(const Simt & simt, const uint32_t * a, const uint32_t * b, int32_t * c) {
    static_assert(depth == 16 || depth == 32, "the instructions' values of K");
    static_assert(Simt::wave_size == 32, "a warp has 32 threads");
    if constexpr (Simt::is_host) {
        LaneOperands operands = { a, b, c };
        simt.template wave_operation<Model<depth>>(operands);
    } else {
#if WAVESMITH_DEVICE_COMPILE && !defined(__HIP__)
        if constexpr (depth == 32) {
            asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
                : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
        } else {
            asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
                : "r"(a[0]), "r"(a[1]), "r"(b[0]));
        }
#endif
    }
}

// Four words of a lane from 16 rows of 32 bytes: rows 0-7 and 8-15 of the first 16 bytes, then of the last 16. That is the A
// operand of m16n8k32; the even and the odd words are the B operands of two of them.
template <class Simt> WAVESMITH_DEVICE static void load_rows(const Simt & simt, uint32_t lds_offset, uint32_t row_stride, uint32_t (&word)[4]) {
    const uint32_t lane = simt.lane();
    if constexpr (Simt::is_host) {
        for (uint32_t w = 0; w < 4; w++) {
            word[w] = simt.template lds_load<uint32_t>(lds_offset + (lane / 4 + 8 * (w % 2)) * row_stride + 4 * (lane % 4) + 16 * (w / 2));
        }
    } else {
#if WAVESMITH_DEVICE_COMPILE && !defined(__HIP__)
        // Lane l gives the address of row l % 8 of matrix l / 8.
        const uint32_t address = simt.lds_address(lds_offset + lane % 16 * row_stride + lane / 16 * 16);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
                     : "r"(address)
                     : "memory");
#endif
    }
}

}  // namespace mma_sync

// The step: 16 x 16, two instructions side by side (four where the step has two parts). Result register r is row r % 2 of the
// lane's rows g and g + 8, and its column r / 2 of 2t, 2t + 1, 2t + 8, 2t + 9.
struct MmaSyncStep {
    static constexpr int  m                  = 16;
    static constexpr int  n                  = 16;
    static constexpr int  registers          = 8;
    static constexpr int  rows_per_lane      = 2;
    static constexpr int  columns_per_lane   = 4;
    static constexpr bool dual_issue         = false;
    static constexpr bool folds_bias         = true;
    static constexpr bool runs_beside_vector = true;

    struct Operand {
        uint32_t word[4];
    };
    struct C {
        int32_t value[registers];
    };

    static constexpr int run(int parts) { return 32 / parts; }
    static constexpr int place(int, int k) { return k; }

    template <class Simt> WAVESMITH_DEVICE static Operand load(const Simt & simt, uint32_t lds_offset, uint32_t row_stride) {
        Operand operand;
        mma_sync::load_rows(simt, lds_offset, row_stride, operand.word);
        return operand;
    }

    template <int parts, class Simt> WAVESMITH_DEVICE static void multiply(const Simt & simt, const Operand & a, const Operand & b, C (&c)[parts]) {
        WAVESMITH_UNROLL
        for (int half = 0; half < 2; half++) {
            if constexpr (parts == 1) {
                const uint32_t words[2] = { b.word[half], b.word[half + 2] };
                multiply_half<32>(simt, a.word, words, half, c[0]);
            } else {
                WAVESMITH_UNROLL
                for (int part = 0; part < parts; part++) {
                    multiply_half<16>(simt, a.word + 2 * part, b.word + 2 * part + half, half, c[part]);
                }
            }
        }
    }

    WAVESMITH_DEVICE static constexpr int row(uint32_t lane, int r) { return int(lane / 4) + 8 * (r % 2); }
    WAVESMITH_DEVICE static constexpr int column(uint32_t lane, int r) { return 2 * int(lane % 4) + r / 2 % 2 + 8 * (r / 4); }
    WAVESMITH_DEVICE static constexpr int row_position(int row) { return row % 8 * 2 + row / 8; }
    WAVESMITH_DEVICE static constexpr int first_row_position(uint32_t lane) { return int(lane / 4) * 2; }

  private:
    // Columns 8 * half … of the step. The instruction has a lane's columns side by side, the step its rows.
    template <int depth, class Simt>
    WAVESMITH_DEVICE static void multiply_half(const Simt & simt, const uint32_t * a, const uint32_t * b, int half, C & c) {
        int32_t * first   = c.value + 4 * half;
        int32_t   sums[4] = { first[0], first[2], first[1], first[3] };
        mma_sync::issue<depth>(simt, a, b, sums);
        first[0] = sums[0];
        first[2] = sums[1];
        first[1] = sums[2];
        first[3] = sums[3];
    }
};

}  // namespace wavesmith::arch
