#include "mul_mat_arguments.h"

namespace wavesmith {

namespace {

// What mmq's and gemm's arguments share.
template <class Arguments> Arguments product_arguments(const MulMat & problem, const SlotGroups & groups, int64_t columns) {
    const Tensor &w = problem.weights, &x = problem.activations, &y = problem.output;
    const bool    by_expert = is_mul_mat_id(problem);
    Arguments     arguments = {};
    arguments.weights     = static_cast<const uint8_t *>(w.data);
    arguments.output      = static_cast<uint8_t *>(const_cast<void *>(y.data));
    arguments.slots       = groups.slots;
    arguments.slot_bounds = groups.bounds;
    arguments.m           = int32_t(w.ne[1]);
    arguments.n           = int32_t(columns);
    arguments.k           = int32_t(w.ne[0]);
    arguments.used        = by_expert ? int32_t(problem.ids.ne[0]) : 1;
    arguments.activation_columns = int32_t(x.ne[1]);
    arguments.ne12        = int32_t(x.ne[2]);
    arguments.ratio2      = by_expert ? 1 : int32_t(x.ne[2] / w.ne[2]);
    arguments.ratio3      = by_expert ? 1 : int32_t(x.ne[3] / w.ne[3]);
    arguments.nb01        = w.nb[1];
    arguments.nb02        = w.nb[2];
    arguments.nb03        = w.nb[3];
    arguments.nb1         = y.nb[1];
    arguments.nb2         = y.nb[2];
    arguments.nb3         = y.nb[3];
    return arguments;
}

}  // namespace

ExpertSlotsArguments expert_slots_arguments(const MulMat & problem, const SlotGroups & groups) {
    const Tensor &       ids       = problem.ids;
    ExpertSlotsArguments arguments = {};
    arguments.ids         = static_cast<const uint8_t *>(ids.data);
    arguments.slots       = groups.slots;
    arguments.slot_bounds = groups.bounds;
    arguments.tokens      = int32_t(ids.ne[1]);
    arguments.used        = int32_t(ids.ne[0]);
    arguments.experts     = int32_t(problem.weights.ne[2]);
    arguments.nb0         = ids.nb[0];
    arguments.nb1         = ids.nb[1];
    return arguments;
}

QuantizeQ8_1Arguments quantize_arguments(const MulMat & problem, uint8_t * quantized) {
    const Tensor &        x         = problem.activations;
    QuantizeQ8_1Arguments arguments = {};
    arguments.input  = static_cast<const uint8_t *>(x.data);
    arguments.output = quantized;
    arguments.k      = int32_t(x.ne[0]);
    arguments.ne1    = int32_t(x.ne[1]);
    arguments.ne2    = int32_t(x.ne[2]);
    arguments.ne3    = int32_t(x.ne[3]);
    arguments.nb0    = x.nb[0];
    arguments.nb1    = x.nb[1];
    arguments.nb2    = x.nb[2];
    arguments.nb3    = x.nb[3];
    return arguments;
}

MmqArguments mmq_arguments(const MulMat & problem, const SlotGroups & groups, int64_t columns, const uint8_t * quantized) {
    MmqArguments arguments    = product_arguments<MmqArguments>(problem, groups, columns);
    arguments.activations     = quantized;
    arguments.activation_rows = int32_t(activation_rows(problem));
    arguments.integer_sums    = problem.integer_sums;
    return arguments;
}

GemmArguments gemm_arguments(const MulMat & problem, const SlotGroups & groups, int64_t columns) {
    const Tensor & x         = problem.activations;
    GemmArguments  arguments = product_arguments<GemmArguments>(problem, groups, columns);
    arguments.activations = static_cast<const uint8_t *>(x.data);
    arguments.nb10        = x.nb[0];
    arguments.nb11        = x.nb[1];
    arguments.nb12        = x.nb[2];
    arguments.nb13        = x.nb[3];
    return arguments;
}

}  // namespace wavesmith
