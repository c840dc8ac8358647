// Which products our kernels take, from types, sizes and strides alone.
#include <limits.h>

#include "common_kernels.h"
#include "dispatch.h"
#include "lds_limit.h"
#include "mmq_choice.h"
#include "mmq_types.h"

namespace wavesmith {

namespace {

constexpr int type_f32 = 0;
constexpr int type_i32 = 26;

Result refuse(std::string & reason, std::string text) {
    reason = std::move(text);
    return Result::unsupported;
}

std::string sizes(const Tensor & tensor) {
    std::string text = "[";
    for (int i = 0; i < 4; ++i) {
        text += (i ? ", " : "") + std::to_string(tensor.ne[i]);
    }
    return text + "]";
}

bool sizes_fit_32_bits(const Tensor & tensor) {
    for (int64_t size : tensor.ne) {
        if (size < 0 || size > INT32_MAX) {
            return false;
        }
    }
    return true;
}

bool strides_divide_by(const Tensor & tensor, int64_t alignment) {
    return tensor.nb[1] % alignment == 0 && tensor.nb[2] % alignment == 0 && tensor.nb[3] % alignment == 0;
}

// Every kernel of the product must keep within the limit, mmq with at least one of its rows.
Result check_lds(const MulMat & problem, Family family, std::string & reason) {
    const LdsLimit limit = read_lds_limit();
    if (!limit.error.empty()) {
        reason = limit.error;
        return Result::invalid_argument;
    }
    const auto within = [&](const std::string & kernel, uint32_t bytes) {
        return limit.allows(bytes) ? Result::ok : refuse(reason, over_lds_limit(kernel, bytes, limit));
    };
    if (is_mul_mat_id(problem) && within("expert_slots", expert_slots_kernel(family).lds_bytes) != Result::ok) {
        return Result::unsupported;
    }
    const MmqType * type = mmq_type(problem.weights.type);
    if (!type) {
        return within("gemm", gemm_kernel(family, problem.weights.type)->kernel.lds_bytes);
    }
    if (within("quantize_q8_1", quantize_q8_1_kernel(family, type->activations).lds_bytes) != Result::ok) {
        return Result::unsupported;
    }
    return within(std::string("the smallest tile of ") + type->name + " on " + family_name(family), least_mmq_lds(type->variants, family));
}

Result check_weights(const Tensor & weights, Family family, std::string & reason) {
    if (const MmqType * type = mmq_type(weights.type)) {
        if (least_mmq_lds(type->variants, family) == UINT32_MAX) {
            return refuse(reason, std::string("no tile plan of ") + family_name(family) + " for " + type->name);
        }
        if (weights.ne[0] % type->block_values != 0) {
            return refuse(reason, "K = " + std::to_string(weights.ne[0]) + " is not whole blocks of " + type->name);
        }
        if (weights.nb[0] != type->block_bytes || !strides_divide_by(weights, type->alignment)) {
            return refuse(reason, std::string("weights are not rows of whole ") + type->name + " blocks");
        }
        return Result::ok;
    }
    if (const GemmKernel * gemm = gemm_kernel(family, weights.type)) {
        if (weights.nb[0] != gemm->weight_bytes || !strides_divide_by(weights, gemm->weight_bytes)) {
            return refuse(reason, std::string("rows of ") + gemm->type_name + " weights are not contiguous");
        }
        return Result::ok;
    }
    return refuse(reason, "weights of ggml type " + std::to_string(weights.type));
}

Result check_plain(const MulMat & problem, std::string & reason) {
    const Tensor &w = problem.weights, &x = problem.activations, &y = problem.output;
    if (w.ne[2] == 0 || w.ne[3] == 0 || x.ne[2] % w.ne[2] != 0 || x.ne[3] % w.ne[3] != 0) {
        return refuse(reason, "batch " + sizes(x) + " is no multiple of the weights' " + sizes(w));
    }
    if (y.ne[0] != w.ne[1] || y.ne[1] != x.ne[1] || y.ne[2] != x.ne[2] || y.ne[3] != x.ne[3]) {
        return refuse(reason, "output " + sizes(y) + " does not fit weights " + sizes(w) + " and activations " + sizes(x));
    }
    return Result::ok;
}

Result check_experts(const MulMat & problem, std::string & reason) {
    const Tensor &w = problem.weights, &x = problem.activations, &y = problem.output, &ids = problem.ids;
    if (ids.type != type_i32 || ids.nb[0] % 4 != 0 || ids.nb[1] % 4 != 0 || ids.ne[2] != 1 || ids.ne[3] != 1) {
        return refuse(reason, "expert numbers are not a matrix of i32");
    }
    if (w.ne[3] != 1 || x.ne[3] != 1 || y.ne[3] != 1 || x.ne[2] != ids.ne[1] || y.ne[0] != w.ne[1] || y.ne[1] != ids.ne[0] ||
        y.ne[2] != ids.ne[1] || (x.ne[1] == 0 ? ids.ne[0] != 0 : ids.ne[0] % x.ne[1] != 0)) {
        return refuse(reason, "output " + sizes(y) + " does not fit experts " + sizes(w) + ", activations " + sizes(x) + " and ids " + sizes(ids));
    }
    return Result::ok;
}

// Rows of src1 and slots are counted in int32; within a tile the kernels address with 32 bits: all activation blocks of one
// step of K, and the rows of the tallest tile.
bool offsets_fit_32_bits(const MulMat & problem) {
    const Tensor & x    = problem.activations;
    const double   rows = double(x.ne[1]) * double(x.ne[2]) * double(x.ne[3]);
    return rows * q8_1_block_bytes(Q8_1Layout::d4s8) <= UINT32_MAX && double(problem.weights.nb[1]) * tallest_mmq_tile() <= UINT32_MAX &&
           double(problem.ids.ne[0]) * double(problem.ids.ne[1]) <= INT32_MAX;
}

}  // namespace

bool is_mul_mat_id(const MulMat & problem) {
    return problem.ids.type == type_i32 && problem.ids.nb[0] != 0;
}

Result supports(const MulMat & problem, Family family, std::string & reason) {
    const Tensor &w = problem.weights, &x = problem.activations, &y = problem.output;
    if (!sizes_fit_32_bits(w) || !sizes_fit_32_bits(x) || !sizes_fit_32_bits(y) || !sizes_fit_32_bits(problem.ids) || !offsets_fit_32_bits(problem)) {
        return refuse(reason, "a size over 2^31 - 1");
    }
    if (x.type != type_f32 || y.type != type_f32) {
        return refuse(reason, "activations or output not f32");
    }
    if (x.ne[0] != w.ne[0]) {
        return refuse(reason, "K of weights " + sizes(w) + " and activations " + sizes(x) + " differ");
    }
    if (x.nb[0] % 4 != 0 || !strides_divide_by(x, 4) || y.nb[0] != 4 || !strides_divide_by(y, 4)) {
        return refuse(reason, "activations or output not aligned to f32");
    }
    const Result weights = check_weights(w, family, reason);
    if (weights != Result::ok) {
        return weights;
    }
    const Result sizes = is_mul_mat_id(problem) ? check_experts(problem, reason) : check_plain(problem, reason);
    return sizes == Result::ok ? check_lds(problem, family, reason) : sizes;
}

int scale_group(int ggml_type) {
    const MmqType * type = mmq_type(ggml_type);
    return type ? type->group : 0;
}

}  // namespace wavesmith
