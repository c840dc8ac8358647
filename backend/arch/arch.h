// What the kernels need to know of a gfx family.
//
// arch/<family>.h defines one struct per family in namespace wavesmith::arch:
//
//     struct Rdna3 {
//         static constexpr Family   family;
//         static constexpr uint32_t wave_size;             // lanes
//         static constexpr uint32_t lds_bytes;             // most LDS one workgroup may have
//
//         // Sum of four int8 products plus accumulator; a and b hold four signed bytes each.
//         template <class Simt> static int32_t dot4(const Simt &, int32_t a, int32_t b, int32_t accumulator);
//
//         // The int8 matrix instruction for a scale group of `group` (16 or 32) values of K.
//         template <int group> using Int8Matrix = ...;
//     };
//
// An Int8Matrix computes C[m x n] += A[m x k] * B[n x k]^T on signed bytes, exactly, in int32. A and B lie in LDS as
// rows of k consecutive bytes; row i starts at offset + i * row_stride (both multiples of 16 bytes, or of 8 where the
// layout reads 8).
//
//     static constexpr int m, n, k;                        // shape; k divides the group
//     static constexpr int registers;                      // int32 results per lane
//     struct A; struct B; struct C { int32_t value[registers]; };
//     template <class Simt> static A    load_a(const Simt &, uint32_t lds_offset, uint32_t row_stride);
//     template <class Simt> static B    load_b(const Simt &, uint32_t lds_offset, uint32_t row_stride);
//     template <class Simt> static void multiply(const Simt &, const A &, const B &, C &);   // all lanes of the wave
//     static constexpr int row(uint32_t lane, int r);      // row of C in result register r of a lane
//     static constexpr int column(uint32_t lane, int r);   // column of C likewise
//
// On a GPU `multiply` is the instruction; on the host it is a model of the same lane layout (arch/lane_layout.h), so
// that a wrong layout gives wrong numbers on the CPU too. Families without matrix instructions (gcn, rdna2) provide an
// Int8Matrix made of dot4, in which a lane owns a small block of rows and columns.
#pragma once

#include "../platform/simt.h"

namespace wavesmith {

enum class Family : int { gcn, cdna2, cdna3, cdna4, rdna2, rdna3, rdna3_5, rdna4, cuda };

constexpr int family_count = 9;

}  // namespace wavesmith
