// Where our kernels have been measured against stock's, and which products are therefore left to stock.
#include <vector>

#include "device_mul_mat.h"

namespace wavesmith {

namespace {

// Products of one weight type that were not slower than 0.98 of stock's speed: at least `least_rows` rows, up to `most_k` values
// of K, and `least_columns` up to `most_columns` columns.
struct Won {
    Family      family;
    int         ggml_type;
    int64_t     least_rows, most_k, least_columns, most_columns;
};

const std::vector<Won> measured = {
#define MMQ_WON(family, ggml_type, least_rows, most_k, least_columns, most_columns) \
    { Family::family, ggml_type, least_rows, most_k, least_columns, most_columns },
#include "mmq_won.inc"
#undef MMQ_WON
};

// Up to this many columns stock multiplies vectors; on families without measurements mmq begins above.
constexpr int64_t most_vector_columns = 8;

bool is_measured(Family family) {
    for (const Won & won : measured) {
        if (won.family == family) {
            return true;
        }
    }
    return false;
}

}  // namespace

bool is_worthwhile(const MulMat & problem, Family family, std::string & reason) {
    const int64_t columns = is_mul_mat_id(problem) ? problem.ids.ne[1] : problem.activations.ne[1];
    if (!is_measured(family)) {
        reason = columns > most_vector_columns ? "" : "stock's matrix-vector kernel for up to 8 columns";
        return columns > most_vector_columns;
    }
    for (const Won & won : measured) {
        if (won.family == family && won.ggml_type == problem.weights.type && problem.weights.ne[1] >= won.least_rows &&
            problem.weights.ne[0] <= won.most_k && columns >= won.least_columns && columns <= won.most_columns && !is_mul_mat_id(problem)) {
            return true;
        }
    }
    reason = "not measured to be as fast as stock";
    return false;
}

}  // namespace wavesmith
