// One matrix instruction as a wave issues it, with operands from LDS: what the tests of the lane layouts work with.
#pragma once

#include "arch/all.h"

namespace wavesmith::arch {

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

using Mfma16x16x16 = MatrixInstruction<mfma::I32_16x16x16>;
using Mfma32x32x8 = MatrixInstruction<mfma::I32_32x32x8>;
using Mfma16x16x32 = MatrixInstruction<mfma::I32_16x16x32>;
using Mfma32x32x16 = MatrixInstruction<mfma::I32_32x32x16>;
using Mfma16x16x64 = MatrixInstruction<mfma::I32_16x16x64>;
using Mfma32x32x32 = MatrixInstruction<mfma::I32_32x32x32>;
using Wmma16x16x16Rdna3 = MatrixInstruction<wmma::I32_16x16x16_Rdna3>;
using Wmma16x16x16Rdna4 = MatrixInstruction<wmma::I32_16x16x16_Rdna4>;

}  // namespace wavesmith::arch
