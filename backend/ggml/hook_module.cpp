// The module that a GPU backend asks before it runs a node (hook/ggml-custom-kernels.h): takes matrix products, and runs of them
// that read the same activations, which are then quantised once.
#include <string.h>

#include <algorithm>
#include <atomic>
#include <string>

#include "../hook/ggml-custom-kernels.h"
#include "../plan/device_mul_mat.h"
#include "../plan/lds_limit.h"
#include "environment.h"
#include "ggml-backend.h"
#include "ledger.h"
#include "log.h"
#include "op_match.h"

namespace wavesmith {
namespace {

// A warning that is given once per process, however many nodes it holds for.
class Once {
  public:
    bool first() { return !said_.exchange(true, std::memory_order_relaxed); }

  private:
    std::atomic<bool> said_{ false };
};

std::string kernels_that_are_on() {
    std::string names;
    for (int i = 0; i < kernel_count; ++i) {
        const Kernel kernel = static_cast<Kernel>(i);
        if (kernel == Kernel::mmq && environment().allows(kernel)) {
            names += (names.empty() ? "" : ", ") + std::string(kernel_name(kernel));
        }
    }
    return names.empty() ? "no kernels" : names;
}

// The line at start, once per process: what runs where.
void announce(const ggml_custom_kernels_env & env, Family family) {
    static Once once;
    if (!once.first()) {
        return;
    }
    if (environment().enabled) {
        log(LogLevel::info, "wavesmith %s on %s (%s): %s", WAVESMITH_VERSION, env.arch, family_name(family), kernels_that_are_on().c_str());
    } else {
        log(LogLevel::info, "wavesmith %s: off (WAVESMITH=0)", WAVESMITH_VERSION);
    }
}

// Read once: a change would not reach kernels that a captured graph replays.
size_t lds_limit(const ggml_custom_kernels_env & env) {
    static const LdsLimit wanted = read_lds_limit();
    return std::min<size_t>(wanted.bytes, env.lds_limit);
}

// Whether our kernels can run on the device at all. Says why not, once.
bool usable(const ggml_custom_kernels_env & env, Family & family) {
    std::string reason;
    if (env.size < sizeof(ggml_custom_kernels_env)) {
        reason = "the backend describes itself in " + std::to_string(env.size) + " bytes, not " + std::to_string(sizeof(ggml_custom_kernels_env));
    } else if (env.arch == nullptr || !family_from_target(env.arch, family) || !family_is_built(family)) {
        reason = std::string("this build has no kernels for ") + (env.arch ? env.arch : "an unnamed architecture");
    } else if (env.lds_limit == 0) {
        reason = std::string(env.arch) + " reports no LDS";
    } else if (env.n_cu <= 0) {
        reason = std::string(env.arch) + " reports no compute units";
    }
    static Once once;
    if (!reason.empty() && once.first()) {
        log(LogLevel::warn, "%s: stock runs everything", reason.c_str());
    }
    return reason.empty();
}

bool is_product(const ggml_tensor * node) {
    return node->op == GGML_OP_MUL_MAT || node->op == GGML_OP_MUL_MAT_ID;
}

bool computes(const ggml_tensor * node) {
    return (node->flags & GGML_TENSOR_FLAG_COMPUTE) != 0;
}

// Weights of a split by rows lie on several devices under one tensor.
std::string placement_refusal(const ggml_tensor * node) {
    for (int i = 0; i < (node->op == GGML_OP_MUL_MAT_ID ? 3 : 2); ++i) {
        const ggml_tensor *         source = node->src[i];
        const ggml_backend_buffer_t buffer = source->view_src ? source->view_src->buffer : source->buffer;
        const char *                type   = buffer ? ggml_backend_buft_name(ggml_backend_buffer_get_type(buffer)) : "";
        if (strstr(type, "Split") != nullptr) {
            return "weights are split over devices by rows";
        }
        if (buffer && ggml_backend_buffer_is_host(buffer)) {
            return "an operand lies in host memory";
        }
    }
    return "";
}

void * allocate_scratch(void * context, size_t bytes) {
    const ggml_custom_kernels_env & env = *static_cast<const ggml_custom_kernels_env *>(context);
    return env.scratch_alloc(&env, bytes);
}

class Products {
  public:
    Products(const ggml_custom_kernels_env & env, Family family)
        : device_{ family, env.device, env.n_cu, lds_limit(env), env.stream, const_cast<ggml_custom_kernels_env *>(&env), allocate_scratch } {}

    // True if the product has been launched; else nothing has, and the ledger has the reason.
    bool take(const ggml_tensor * node) {
        MulMat      problem;
        std::string reason = refusal(node, problem);
        if (reason.empty()) {
            std::string  kernel;
            const Result result = run_on_device(problem, device_, quantized_, reason, ledger_is_on() ? &kernel : nullptr);
            if (result == Result::ok) {
                ledger_ran(node, kernel);
                return true;
            }
            warn_of(result, node, reason);
        }
        ledger_refused(node, reason);
        return false;
    }

  private:
    std::string refusal(const ggml_tensor * node, MulMat & problem) const {
        if (!environment().allows(Kernel::mmq)) {
            return std::string("WAVESMITH_KERNELS leaves out ") + kernel_name(Kernel::mmq);
        }
        std::string reason = match_mul_mat(node, problem);
        if (reason.empty() && !has_data(node)) {
            reason = "a tensor has no memory";
        }
        if (reason.empty()) {
            reason = placement_refusal(node);
        }
        if (reason.empty() && supports(problem, device_.family, reason) == Result::ok && !environment().take_all) {
            is_worthwhile(problem, device_.family, reason);
        }
        return reason;
    }

    static void warn_of(Result result, const ggml_tensor * node, const std::string & reason) {
        static Once once;
        if (result == Result::fault && once.first()) {
            log(LogLevel::warn, "%s '%s' left to stock: %s", ggml_op_name(node->op), node->name, reason.c_str());
        }
    }

    DeviceEnvironment    device_;
    QuantizedActivations quantized_;
};

// The node that follows `index`, past those that only rename memory, if it is a product that reads `input` too; else -1.
// Outputs in between are all written, and none can overlay `input`, which the later node still reads.
int next_with_input(ggml_cgraph * graph, int index, int limit, const ggml_tensor * input) {
    for (int i = index + 1; i < limit; ++i) {
        const ggml_tensor * node = ggml_graph_node(graph, i);
        if (is_view_op(node->op)) {
            continue;
        }
        return computes(node) && is_product(node) && node->src[1] == input ? i : -1;
    }
    return -1;
}

int try_nodes(const ggml_custom_kernels_env * env, ggml_cgraph * graph, int first_node) {
    const ggml_tensor * node   = ggml_graph_node(graph, first_node);
    Family              family = Family::rdna3;
    if (!is_product(node) || !usable(*env, family)) {
        return 0;
    }
    announce(*env, family);
    if (!environment().enabled) {
        return 0;
    }
    ledger_start();
    Products products(*env, family);
    if (!products.take(node)) {
        return 0;
    }
    const int limit = std::min(first_node + env->max_nodes, ggml_graph_n_nodes(graph));
    int       last  = first_node;
    for (int next = next_with_input(graph, last, limit, node->src[1]); next > 0 && products.take(ggml_graph_node(graph, next));
         next     = next_with_input(graph, last, limit, node->src[1])) {
        last = next;
    }
    return last - first_node + 1;
}

}  // namespace
}  // namespace wavesmith

extern "C" const struct ggml_custom_kernels_module * ggml_custom_kernels_module_wavesmith(void) {
    static const ggml_custom_kernels_module module = { sizeof(ggml_custom_kernels_module), GGML_CUSTOM_KERNELS_ABI, GGML_CUSTOM_KERNELS_TREE,
                                                       "wavesmith", WAVESMITH_VERSION, wavesmith::try_nodes };
    return &module;
}
