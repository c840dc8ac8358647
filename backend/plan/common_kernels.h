// The kernels that do not depend on a tile plan, per family: quantize_q8_1, expert_slots and gemm.
#pragma once

#include "../kernels/expert_slots.h"
#include "../kernels/gemm.h"
#include "../kernels/quantize_q8_1.h"
#include "dispatch.h"
#include "compiled_kernel.h"

namespace wavesmith {

// One block of the grid's y dimension covers quantize_q8_1_values_per_block values of K.
const CompiledKernel<QuantizeQ8_1Arguments> & quantize_q8_1_kernel(Family family, Q8_1Layout layout);
constexpr int                             quantize_q8_1_values_per_block = 512;

const CompiledKernel<ExpertSlotsArguments> & expert_slots_kernel(Family family);

struct GemmKernel {
    const char *              type_name;
    int                       weight_bytes;
    int                       rows, columns;  // of one block
    CompiledKernel<GemmArguments> kernel;
};

// nullptr: gemm does not take weights of this type.
const GemmKernel * gemm_kernel(Family family, int ggml_type);

}  // namespace wavesmith
