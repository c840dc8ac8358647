#include "op_match.h"

#include <string.h>

namespace wavesmith {

// op_params[1] of MUL_MAT: ggml's GGML_HINT_SRC0_IS_HADAMARD, a number because ggml before 0.13 has no such name.
static constexpr int     hint_parameter   = 1;
static constexpr int32_t hint_is_hadamard = 1;

// Stands for the expert list of a node without memory: plan/dispatch.h tells MUL_MAT_ID by ids.data.
static const int32_t unallocated_ids = 0;

bool is_view_op(enum ggml_op op) {
    return op == GGML_OP_NONE || op == GGML_OP_RESHAPE || op == GGML_OP_VIEW || op == GGML_OP_PERMUTE || op == GGML_OP_TRANSPOSE;
}

static Tensor describe(const ggml_tensor * tensor) {
    Tensor result = {};
    result.type   = static_cast<int>(tensor->type);
    result.data   = tensor->data;
    result.bytes  = ggml_nbytes(tensor);
    for (int i = 0; i < 4; ++i) {
        result.ne[i] = tensor->ne[i];
        result.nb[i] = static_cast<int64_t>(tensor->nb[i]);
    }
    return result;
}

static std::string type_clause(const char * what, const ggml_tensor * tensor) {
    return std::string(what) + " of type " + ggml_type_name(tensor->type);
}

// What no kernel of ours accepts whatever the weight type, in ggml's terms.
static std::string common_refusal(const ggml_tensor * node) {
    const ggml_tensor * weights     = node->src[0];
    const ggml_tensor * activations = node->src[1];
    if (weights == nullptr || activations == nullptr) {
        return "an operand is missing";
    }
    if (ggml_is_empty(node) || ggml_is_empty(weights) || ggml_is_empty(activations)) {
        return "a dimension is zero";
    }
    if (activations->type != GGML_TYPE_F32) {
        return type_clause("activations", activations);
    }
    if (node->type != GGML_TYPE_F32) {
        return type_clause("output", node);
    }
    if (weights->nb[0] != ggml_type_size(weights->type)) {
        return "weight rows are not contiguous";
    }
    if (node->nb[0] != sizeof(float)) {
        return "output rows are not contiguous";
    }
    if (activations->ne[0] != weights->ne[0] || node->ne[0] != weights->ne[1]) {
        return "sizes of a matrix product do not agree";
    }
    return "";
}

static std::string mul_mat_refusal(const ggml_tensor * node) {
    int32_t hint;
    memcpy(&hint, &node->op_params[hint_parameter], sizeof(hint));
    if (hint == hint_is_hadamard) {
        return "weights are a Hadamard matrix";
    }
    for (int i = 2; i < 4; ++i) {
        if (node->src[1]->ne[i] % node->src[0]->ne[i] != 0) {
            return "batch sizes do not broadcast";
        }
    }
    return "";
}

static std::string mul_mat_id_refusal(const ggml_tensor * node) {
    const ggml_tensor * ids = node->src[2];
    if (ids == nullptr) {
        return "the expert list is missing";
    }
    if (ids->type != GGML_TYPE_I32) {
        return type_clause("expert list", ids);
    }
    if (ids->nb[0] != sizeof(int32_t)) {
        return "expert list rows are not contiguous";
    }
    if (node->src[0]->ne[3] != 1 || node->src[1]->ne[3] != 1) {
        return "experts have a fourth dimension";
    }
    return "";
}

std::string match_mul_mat(const ggml_tensor * node, MulMat & problem) {
    const bool  has_ids = node->op == GGML_OP_MUL_MAT_ID;
    std::string refusal = common_refusal(node);
    if (refusal.empty()) {
        refusal = has_ids ? mul_mat_id_refusal(node) : mul_mat_refusal(node);
    }
    if (!refusal.empty()) {
        return refusal;
    }
    problem             = MulMat();
    problem.weights     = describe(node->src[0]);
    problem.activations = describe(node->src[1]);
    problem.output      = describe(node);
    problem.ids         = Tensor();
    if (has_ids) {
        problem.ids = describe(node->src[2]);
        if (problem.ids.data == nullptr) {
            problem.ids.data = &unallocated_ids;
        }
    }
    return "";
}

bool has_data(const ggml_tensor * node) {
    if (node->data == nullptr) {
        return false;
    }
    const int operands = node->op == GGML_OP_MUL_MAT_ID ? 3 : 2;
    for (int i = 0; i < operands; ++i) {
        if (node->src[i] == nullptr || node->src[i]->data == nullptr) {
            return false;
        }
    }
    return true;
}

}  // namespace wavesmith
