// A step of 32 values of K on a family's int8 matrix instruction: what mmq is written with.
//
// A and B lie in LDS as rows of bytes, 32 consecutive ones per step. Each lane loads its share of a row, a slice of
// 32 / lane_groups bytes, in 16-byte reads. Which k a lane multiplies is free as long as A and B agree, so a step whose 32
// values share one sum needs no rearrangement. A step of two parts (a sum for its first and one for its last 16 values)
// wants both halves of a lane's slice side by side: `place` says where value k of the step goes.
//
//     static constexpr int m, n;                       // rows and columns of C
//     static constexpr int registers;                  // results per lane: rows_per_lane x columns_per_lane, rows first
//     static constexpr int rows_per_lane, columns_per_lane;
//     static constexpr bool dual_issue;                // two f32 operations of a wave can issue as one instruction
//     static constexpr bool folds_bias;                // scaling a sum in one operation is worth a register per row
//     static constexpr bool runs_beside_vector;        // a product runs while the wave goes on with vector instructions
//     struct Operand;                                  // a lane's slice of A or of B
//     struct C { int32_t value[registers]; };
//     static constexpr int run(int parts);             // values that stay neighbours under `place`: 8, 16 or 32
//     static constexpr int place(int parts, int k);    // byte of value k (0 … 31) within the step's 32 bytes
//     static Operand load(simt, uint32_t lds_offset, uint32_t row_stride);       // first row, first byte of the step
//     static void multiply<parts>(simt, const Operand & a, const Operand & b, C (&c)[parts]);
//     static int row(lane, r), column(lane, r);        // of result register r
//     // Where a row's scale is kept so that a lane finds those of its registers side by side, and where a lane's begin.
//     static constexpr int row_position(int row);
//     static int first_row_position(lane);
#pragma once

#include "matrix_instruction.h"

namespace wavesmith::arch {

// `rdna`: two f32 operations of a wave can issue as one instruction (VOPD), and matrix products take the vector unit's slots;
// else (CDNA) matrix products run beside vector instructions.
template <class Instruction, bool rdna = false> struct MatrixStep {
    using Layout = typename Instruction::Layout;

    static constexpr int m                = Layout::n;
    static constexpr int n                = Layout::n;
    static constexpr int registers        = Layout::registers;
    static constexpr int rows_per_lane    = Layout::registers;
    static constexpr int columns_per_lane = 1;
    static constexpr int lane_groups      = Layout::k / Layout::operand_bytes;
    static constexpr int slice_bytes      = 32 / lane_groups;
    static constexpr int instructions     = 32 / Layout::k;
    static constexpr bool dual_issue      = rdna;
    static constexpr bool folds_bias      = false;
    static constexpr bool runs_beside_vector = !rdna;

    static_assert(slice_bytes % 16 == 0, "slices are read in 16 bytes");

    struct Operand {
        Bytes16 bytes[slice_bytes / 16];
    };
    struct C {
        int32_t value[registers];
    };

    static constexpr int run(int parts) { return 32 / parts / lane_groups; }
    static constexpr int place(int parts, int k) {
        const int part_values = 32 / parts;
        const int in_part     = k % part_values;
        return in_part / run(parts) * slice_bytes + k / part_values * run(parts) + in_part % run(parts);
    }

    template <class Simt> WAVESMITH_DEVICE static Operand load(const Simt & simt, uint32_t lds_offset, uint32_t row_stride) {
        const uint32_t lane    = simt.lane();
        const uint32_t address = lds_offset + lane % n * row_stride + lane / n % lane_groups * slice_bytes;
        Operand        operand;
        WAVESMITH_UNROLL
        for (int i = 0; i < slice_bytes / 16; i++) {
            operand.bytes[i] = simt.template lds_load<Bytes16>(address + 16 * i);
        }
        return operand;
    }

    template <int parts, class Simt> WAVESMITH_DEVICE static void multiply(const Simt & simt, const Operand & a, const Operand & b, C (&c)[parts]) {
        static_assert(Simt::wave_size == Layout::wave_size, "the instruction's wave size");
        static_assert(instructions % parts == 0, "a part is whole instructions");
        WAVESMITH_UNROLL
        for (int i = 0; i < instructions; i++) {
            Words a_words, b_words;
            __builtin_memcpy(&a_words, reinterpret_cast<const char *>(&a) + i * Layout::operand_bytes, sizeof(Words));
            __builtin_memcpy(&b_words, reinterpret_cast<const char *>(&b) + i * Layout::operand_bytes, sizeof(Words));
            C & sums = c[i / (instructions / parts)];
            if constexpr (Simt::is_host) {
                LaneOperands operands = { &a_words, &b_words, sums.value };
                simt.template wave_operation<MatrixModel<Instruction>>(operands);
            } else {
                Instruction::issue(a_words, b_words, sums);
            }
        }
    }

    WAVESMITH_DEVICE static constexpr int row(uint32_t lane, int r) { return Layout::row(lane, r); }
    WAVESMITH_DEVICE static constexpr int column(uint32_t lane, int) { return Layout::column(lane); }
    WAVESMITH_DEVICE static constexpr int row_position(int row) { return Layout::row_position(row); }
    WAVESMITH_DEVICE static constexpr int first_row_position(uint32_t lane) { return int(lane / n) * rows_per_lane; }

  private:
    using Words = typename OperandWords<Layout::operand_bytes>::Type;
};

}  // namespace wavesmith::arch
