// An int8 matrix instruction: what mfma.h and wmma.h define, and what matrix_step.h needs of it on every platform.
//
// `Instruction` has
//     using Layout = ...;   // lane_layout.h
//     static const char * name();   // the instruction's mnemonic
//     // On a GPU: the instruction, on operand_bytes / 4 words of A and of B and `registers` words of C. Signed, no clamp.
//     template <class A, class B, class C> WAVESMITH_DEVICE static void issue(const A & a, const B & b, C & c);
#pragma once

#include "lane_layout.h"
#include "matrix_model.h"

namespace wavesmith::arch {

// What a lane loads for one operand, as wide as the layout's operand_bytes.
template <int bytes> struct OperandWords;
template <> struct OperandWords<4> {
    using Type = int32_t;
};
template <> struct OperandWords<8> {
    using Type = Bytes8;
};
template <> struct OperandWords<16> {
    using Type = Bytes16;
};

// The instruction as a wave operation of the host platform.
template <class Instruction> struct MatrixModel {
    using Layout = typename Instruction::Layout;

    static const char * name() { return Instruction::name(); }
    static void         compute(void * const * operands) { multiply_accumulate_lanes<Layout>(operands); }

    // Lanes beyond those that hold k must repeat the operands of the lanes below.
    static int faulty_lane(void * const * operands) {
        constexpr int holding = Layout::k / Layout::operand_bytes * Layout::n;
        for (int lane = holding; lane < Layout::wave_size; lane++) {
            const LaneOperands & own   = *static_cast<const LaneOperands *>(operands[lane]);
            const LaneOperands & other = *static_cast<const LaneOperands *>(operands[lane % holding]);
            if (memcmp(own.a, other.a, Layout::operand_bytes) != 0 || memcmp(own.b, other.b, Layout::operand_bytes) != 0) {
                return lane;
            }
        }
        return -1;
    }
    static const char * fault() { return "this lane does not repeat the A and B operands of the lane that it mirrors"; }
};

}  // namespace wavesmith::arch
