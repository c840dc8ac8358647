// What the kernels of a matrix product are launched with, the same on every platform.
#pragma once

#include "../kernels/expert_slots.h"
#include "../kernels/gemm.h"
#include "../kernels/mmq_arguments.h"
#include "../kernels/quantize_q8_1.h"
#include "dispatch.h"

namespace wavesmith {

// MUL_MAT_ID: where expert_slots puts its groups. Null for MUL_MAT.
struct SlotGroups {
    int32_t * slots  = nullptr;
    int32_t * bounds = nullptr;
};

constexpr int64_t divide_up(int64_t value, int64_t step) {
    return (value + step - 1) / step;
}

inline int64_t activation_rows(const MulMat & problem) {
    return problem.activations.ne[1] * problem.activations.ne[2] * problem.activations.ne[3];
}

// Slots of a MUL_MAT_ID: places for a token's product with an expert.
inline int64_t slot_count(const MulMat & problem) {
    return problem.ids.ne[0] * problem.ids.ne[1];
}

// Batch entries, or experts: the z dimension of a grid.
inline int64_t entry_count(const MulMat & problem) {
    return is_mul_mat_id(problem) ? problem.weights.ne[2] : problem.activations.ne[2] * problem.activations.ne[3];
}

inline size_t quantized_bytes(const MulMat & problem, Q8_1Layout layout) {
    return size_t(divide_up(problem.activations.ne[0], q8_1_block_values) * activation_rows(problem)) * q8_1_block_bytes(layout);
}

ExpertSlotsArguments  expert_slots_arguments(const MulMat & problem, const SlotGroups & groups);
QuantizeQ8_1Arguments quantize_arguments(const MulMat & problem, uint8_t * quantized);

// `columns`: of a batch entry, or of the fullest expert.
MmqArguments  mmq_arguments(const MulMat & problem, const SlotGroups & groups, int64_t columns, const uint8_t * quantized);
GemmArguments gemm_arguments(const MulMat & problem, const SlotGroups & groups, int64_t columns);

}  // namespace wavesmith
