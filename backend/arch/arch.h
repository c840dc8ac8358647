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
//         // A step of 32 values of K on the family's matrix instruction, with one sum or two (matrix_step.h).
//         template <int parts> using Int8Step = ...;
//     };
//
// On a GPU a product is the instruction; on the host it is a model of the same lane layout (lane_layout.h), so that a wrong
// layout gives wrong numbers on the CPU too. Families without matrix instructions (gcn, rdna2) make their steps of dot4
// (dot4_step.h), in which a lane owns a small block of rows and columns.
#pragma once

#include "../platform/simt.h"

namespace wavesmith {

enum class Family : int { gcn, cdna2, cdna3, cdna4, rdna2, rdna3, rdna3_5, rdna4 };

constexpr int family_count = 8;

}  // namespace wavesmith
