// Runs matrix products on the host platform: the one entry that the ggml backend and the Python API share.
//
// Sizes are in elements and strides in bytes, with ggml's names: ne/nb of src0 (weights, ne00 = K, ne01 = M), src1
// (activations, ne10 = K, ne11 = N) and dst (ne0 = M, ne1 = N). Type numbers are ggml's.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <string>

#include "../arch/arch.h"

namespace wavesmith {

struct Tensor {
    int          type;   // ggml_type number
    const void * data;
    size_t       bytes;  // bytes from data that may be accessed
    int64_t      ne[4];
    int64_t      nb[4];
};

struct MulMat {
    Tensor weights;      // src0, any supported type, nb[0] = size of one element or block
    Tensor activations;  // src1, f32, any nb
    Tensor output;       // dst, f32, nb[0] = 4
    Tensor ids;          // MUL_MAT_ID only: i32 [n_expert_used, n_tokens]; all zero otherwise
    // Checked build only: int32 sums per scale group, [N][M][K / group] for a plain two-dimensional product, or nullptr.
    int32_t * integer_sums       = nullptr;
    size_t    integer_sums_bytes = 0;
};

struct HostOptions {
    Family       family  = Family::rdna3;
    int          threads = 1;
    const char * variant = nullptr;  // a tile plan's name; nullptr lets the planner choose
};

enum class Result {
    ok,
    unsupported,       // wrong type, shape or stride for our kernels; `reason` says which
    invalid_argument,  // contradictory sizes
    fault,             // the checked build found an out-of-range access, a race or a diverging wave
    out_of_memory,
};

// MUL_MAT_ID is told from MUL_MAT by the strides of `ids`, so that `supports` needs no data.
bool is_mul_mat_id(const MulMat & problem);

// Says whether `run` would take the product, looking at types, sizes and strides only (data pointers may be null).
// On Result::unsupported, `reason` is one short clause such as "weights of type q8_1"; on Result::invalid_argument it says which
// setting is malformed.
Result supports(const MulMat & problem, Family family, std::string & reason);

// Computes output = weights x activations, blocking. Thread-safe: concurrent calls share one thread pool.
// `kernel` (may be nullptr) receives the name of the kernel and plan that ran, "mmq", the family, the type and the plan.
Result run(const MulMat & problem, const HostOptions & options, std::string & message, std::string * kernel = nullptr);

// Values per integer sum of a weight type (16, 32 or 64), 0 for float types and unknown ones.
int scale_group(int ggml_type);

const char * family_name(Family family);
bool         family_from_name(const char * name, Family & family);

}  // namespace wavesmith
