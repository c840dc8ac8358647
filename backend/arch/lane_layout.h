// Which lane holds what in an int8 matrix instruction C[n x n] += A[n x k] * B[n x k]^T, and a model of it for the CPU.
//
// A layout says, for the wave's lanes l = group * n + position:
//     operand:  the lane holds operand_bytes consecutive k of row `position` of A and of row `position` of B, from
//               operand_k(l) on;
//     result:   the lane's register r is C at row row(l, r) and column column(l); row_position(row) is group * registers + r
//               of the lanes and register that hold a row.
//
// Sources: AMD's matrix instruction documentation for CDNA, GPUOpen's WMMA notes for RDNA; checked against compiled
// machine code on an instruction set emulator.
#pragma once

#include "../platform/simt.h"

namespace wavesmith::arch {

// What all layouts share; `Own` adds operand_bytes, operand_k, group_row and row_position.
template <class Own, int size, int depth, int lanes> struct LaneLayout {
    static constexpr int n         = size;
    static constexpr int k         = depth;
    static constexpr int wave_size = lanes;
    static constexpr int registers = size * size / lanes;

    WAVESMITH_DEVICE static constexpr int operand_row(uint32_t lane) { return int(lane % size); }
    WAVESMITH_DEVICE static constexpr int row(uint32_t lane, int r) { return Own::group_row(int(lane / size), r); }
    WAVESMITH_DEVICE static constexpr int column(uint32_t lane) { return int(lane % size); }
};

// RDNA3: every lane holds all 16 k of its row, and lanes 16-31 must hold the same as lanes 0-15.
struct Rdna3Layout : LaneLayout<Rdna3Layout, 16, 16, 32> {
    static constexpr int operand_bytes = 16;
    WAVESMITH_DEVICE static constexpr int operand_k(uint32_t) { return 0; }
    WAVESMITH_DEVICE static constexpr int group_row(int group, int r) { return 2 * r + group; }
    WAVESMITH_DEVICE static constexpr int row_position(int row) { return row % 2 * 8 + row / 2; }
};

// RDNA4: the two halves of the wave share k.
struct Rdna4Layout : LaneLayout<Rdna4Layout, 16, 16, 32> {
    static constexpr int operand_bytes = 8;
    WAVESMITH_DEVICE static constexpr int operand_k(uint32_t lane) { return 8 * int(lane / 16); }
    WAVESMITH_DEVICE static constexpr int group_row(int group, int r) { return 8 * group + r; }
    WAVESMITH_DEVICE static constexpr int row_position(int row) { return row; }
};

// CDNA, 16 x 16: four groups of 16 lanes share k.
template <int depth> struct Mfma16Layout : LaneLayout<Mfma16Layout<depth>, 16, depth, 64> {
    static constexpr int operand_bytes = depth / 4;
    WAVESMITH_DEVICE static constexpr int operand_k(uint32_t lane) { return depth / 4 * int(lane / 16); }
    WAVESMITH_DEVICE static constexpr int group_row(int group, int r) { return 4 * group + r; }
    WAVESMITH_DEVICE static constexpr int row_position(int row) { return row; }
};

// CDNA, 32 x 32: two groups of 32 lanes share k.
template <int depth> struct Mfma32Layout : LaneLayout<Mfma32Layout<depth>, 32, depth, 64> {
    static constexpr int operand_bytes = depth / 2;
    WAVESMITH_DEVICE static constexpr int operand_k(uint32_t lane) { return depth / 2 * int(lane / 32); }
    WAVESMITH_DEVICE static constexpr int group_row(int group, int r) { return 8 * (r / 4) + 4 * group + r % 4; }
    WAVESMITH_DEVICE static constexpr int row_position(int row) { return row / 4 % 2 * 16 + row / 8 * 4 + row % 4; }
};

// One lane's share of an instruction: its operand bytes and its result registers.
struct LaneOperands {
    const void * a;
    const void * b;
    int32_t *    c;
};

}  // namespace wavesmith::arch
