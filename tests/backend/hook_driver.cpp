// The module of a GPU backend, asked as the backend asks it, with kernels that run on the host platform in place of a GPU's.
//
//     hook_driver ARCH LDS_LIMIT MAX_NODES
//
// The graph: two q4_K products that read the same activations, a view between them, then a third product, of f16 weights. Prints
// "nodes N", "scratch N" (allocations) and "error E" (largest relative error of a product that was taken).
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ggml-custom-kernels.h"
#include "platform/host/device_launch.h"

extern "C" const struct ggml_custom_kernels_module * ggml_custom_kernels_module_wavesmith(void);

namespace wavesmith::device {

const char * prepare(const void * function, uint32_t, int device) {
    return function && device == 3 ? nullptr : "no such device";
}

const char * launch(const void * function, Grid grid, uint32_t threads, uint32_t, void * stream, void * arguments) {
    if (stream != reinterpret_cast<void *>(0x77)) {
        return "another stream";
    }
    const HostFunction & host = *static_cast<const HostFunction *>(function);
    host::Launch         launch = { "kernel", { grid.x, grid.y, grid.z }, threads, host.lds_bytes, nullptr, 0, 1 };
    return host.run(launch, arguments).empty() ? nullptr : "the kernel failed";
}

}  // namespace wavesmith::device

static std::vector<void *> scratch;

static void * allocate(const ggml_custom_kernels_env *, size_t bytes) {
    scratch.push_back(aligned_alloc(256, (bytes + 255) / 256 * 256));
    return scratch.back();
}

static float relative_error(const ggml_tensor * product) {
    const ggml_tensor *w = product->src[0], *x = product->src[1];
    std::vector<float> row(size_t(w->ne[0]));
    double             worst = 0, largest = 0;
    for (int64_t m = 0; m < w->ne[1]; ++m) {
        ggml_get_type_traits(w->type)->to_float(static_cast<const char *>(w->data) + m * w->nb[1], row.data(), w->ne[0]);
        for (int64_t n = 0; n < x->ne[1]; ++n) {
            double want = 0;
            for (int64_t k = 0; k < w->ne[0]; ++k) {
                want += double(row[size_t(k)]) * static_cast<const float *>(x->data)[n * x->ne[0] + k];
            }
            const float got = static_cast<const float *>(product->data)[n * product->ne[0] + m];
            worst           = std::isnan(got) ? 1e9 : std::max(worst, fabs(got - want));
            largest         = std::max(largest, fabs(want));
        }
    }
    return float(worst / largest);
}

static ggml_tensor * weights(ggml_context * context, ggml_type type, int64_t k, int64_t m) {
    ggml_tensor *      tensor = ggml_new_tensor_2d(context, type, k, m);
    std::vector<float> values(size_t(k * m));
    for (size_t i = 0; i < values.size(); ++i) {
        values[i] = sinf(float(i) * 0.37f);
    }
    ggml_quantize_chunk(type, values.data(), tensor->data, 0, m, k, nullptr);
    return tensor;
}

int main(int count, char ** words) {
    if (count != 4) {
        return 2;
    }
    ggml_init_params parameters = {};
    parameters.mem_size         = 64 << 20;
    ggml_context * context      = ggml_init(parameters);
    ggml_tensor *  x            = ggml_new_tensor_2d(context, GGML_TYPE_F32, 512, 19);
    for (int64_t i = 0; i < ggml_nelements(x); ++i) {
        static_cast<float *>(x->data)[i] = cosf(float(i) * 0.11f);
    }
    ggml_tensor * first  = ggml_mul_mat(context, weights(context, GGML_TYPE_Q4_K, 512, 70), x);
    ggml_tensor * view   = ggml_reshape_3d(context, first, 35, 2, 19);
    ggml_tensor * second = ggml_mul_mat(context, weights(context, GGML_TYPE_Q4_K, 512, 33), x);
    ggml_tensor * third  = ggml_mul_mat(context, weights(context, GGML_TYPE_F16, 512, 8), x);
    ggml_cgraph * graph  = ggml_new_graph(context);
    for (ggml_tensor * node : { first, view, second, third }) {
        ggml_build_forward_expand(graph, node);
        node->flags |= GGML_TENSOR_FLAG_COMPUTE;
    }
    std::fill_n(static_cast<float *>(first->data), ggml_nelements(first), NAN);
    std::fill_n(static_cast<float *>(second->data), ggml_nelements(second), NAN);

    ggml_custom_kernels_env env = {};
    env.size                    = sizeof(env);
    env.abi                     = GGML_CUSTOM_KERNELS_ABI;
    env.platform                = GGML_CUSTOM_KERNELS_HIP;
    env.device                  = 3;
    env.n_cu                    = 96;
    env.warp_size               = 32;
    env.max_nodes               = atoi(words[3]);
    env.lds_limit               = size_t(atol(words[2]));
    env.arch                    = words[1];
    env.stream                  = reinterpret_cast<void *>(0x77);
    env.scratch_alloc           = allocate;

    const ggml_custom_kernels_module * module = ggml_custom_kernels_module_wavesmith();
    const int                          nodes  = module->try_nodes(&env, graph, 0);
    float                              error  = 0;
    for (int i = 0; i < nodes; ++i) {
        const ggml_tensor * node = ggml_graph_node(graph, i);
        error                    = node->op == GGML_OP_MUL_MAT ? std::max(error, relative_error(node)) : error;
    }
    printf("module %s abi %u\nnodes %d\nscratch %zu\nerror %g\n", module->name, module->abi, nodes, scratch.size(), double(error));
    printf("other %d\n", module->try_nodes(&env, graph, 3));
    for (void * memory : scratch) {
        free(memory);
    }
    ggml_free(context);
    return 0;
}
