// Reads a ggml operation as a matrix product for plan/dispatch.h, or says why it is not ours.
#pragma once

#include <string>

#include "../plan/dispatch.h"
#include "ggml.h"

namespace wavesmith {

// True for operations that only rename memory, which need no kernel.
bool is_view_op(enum ggml_op op);

// Fills `problem` from a GGML_OP_MUL_MAT or GGML_OP_MUL_MAT_ID node. Data may not be allocated yet, as in supports_op;
// `problem` then has null pointers, except that `ids.data` is never null for MUL_MAT_ID.
// Returns an empty string, or one short clause such as "activations of type f16".
std::string match_mul_mat(const ggml_tensor * node, MulMat & problem);

// True if every tensor of the node has its data.
bool has_data(const ggml_tensor * node);

}  // namespace wavesmith
