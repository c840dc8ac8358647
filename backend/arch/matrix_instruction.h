// The Int8Matrix (arch.h) of a family with matrix instructions.
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

template <class Instruction> struct MatrixInstruction {
    using Layout = typename Instruction::Layout;

    static constexpr int m         = Layout::n;
    static constexpr int n         = Layout::n;
    static constexpr int k         = Layout::k;
    static constexpr int registers = Layout::registers;

    using Words = typename OperandWords<Layout::operand_bytes>::Type;

    struct A {
        Words words;
    };
    struct B {
        Words words;
    };
    struct C {
        int32_t value[registers];
    };

    // Rows of 16 bytes at offsets that are multiples of operand_bytes.
    template <class Simt> WAVESMITH_DEVICE static A load_a(const Simt & simt, uint32_t lds_offset, uint32_t row_stride) {
        return { load(simt, lds_offset, row_stride) };
    }
    template <class Simt> WAVESMITH_DEVICE static B load_b(const Simt & simt, uint32_t lds_offset, uint32_t row_stride) {
        return { load(simt, lds_offset, row_stride) };
    }

    template <class Simt> WAVESMITH_DEVICE static void multiply(const Simt & simt, const A & a, const B & b, C & c) {
        static_assert(Simt::wave_size == Layout::wave_size, "the instruction's wave size");
        if constexpr (Simt::is_host) {
            LaneOperands operands = { &a, &b, c.value };
            simt.template wave_operation<MatrixModel<Instruction>>(operands);
        } else {
            Instruction::issue(a, b, c);
        }
    }

    WAVESMITH_DEVICE static constexpr int row(uint32_t lane, int r) { return Layout::row(lane, r); }
    WAVESMITH_DEVICE static constexpr int column(uint32_t lane, int) { return Layout::column(lane); }

private:
    template <class Simt> WAVESMITH_DEVICE static Words load(const Simt & simt, uint32_t lds_offset, uint32_t row_stride) {
        const uint32_t lane = simt.lane();
        return simt.template lds_load<Words>(lds_offset + uint32_t(Layout::operand_row(lane)) * row_stride + uint32_t(Layout::operand_k(lane)));
    }
};

}  // namespace wavesmith::arch
