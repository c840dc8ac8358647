// Asks the registered modules of custom kernels before a node of the graph runs (ggml-custom-kernels.h).
#pragma once

#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <vector>

#include "../ggml-custom-kernels.h"
#include "common.cuh"
#include "ggml-custom-kernels-list.h"

// Weak, so that the backend also links and loads where a configured module is left out.
#define GGML_CUSTOM_KERNELS_DECLARE(module_name) \
    extern "C" __attribute__((weak)) const struct ggml_custom_kernels_module * ggml_custom_kernels_module_##module_name(void);
GGML_CUSTOM_KERNELS_DEVICE(GGML_CUSTOM_KERNELS_DECLARE)
#undef GGML_CUSTOM_KERNELS_DECLARE

struct ggml_custom_kernels_registry {
    std::mutex                                mutex;
    std::atomic<int>                          count{ 0 };  // released after the entry is written
    const struct ggml_custom_kernels_module * modules[GGML_CUSTOM_KERNELS_MAX_MODULES] = {};
};

static ggml_custom_kernels_registry & ggml_custom_kernels_get_registry() {
    static ggml_custom_kernels_registry registry;
    return registry;
}

// True when the module was built with this interface and for this tree; logs both numbers otherwise.
static bool ggml_custom_kernels_is_compatible(const struct ggml_custom_kernels_module & module) {
    // size and abi come first in every version of the struct, so they can be read before anything else is trusted.
    if (module.abi != GGML_CUSTOM_KERNELS_ABI) {
        GGML_LOG_ERROR("custom kernels refused: module has ABI %u, this backend has ABI %u\n", module.abi, GGML_CUSTOM_KERNELS_ABI);
        return false;
    }
    if (module.size != sizeof(struct ggml_custom_kernels_module)) {
        GGML_LOG_ERROR("custom kernels refused: module struct has %u bytes, this backend expects %zu\n", module.size,
                       sizeof(struct ggml_custom_kernels_module));
        return false;
    }
    const struct ggml_custom_kernels_tree tree = GGML_CUSTOM_KERNELS_TREE;
    if (memcmp(&module.tree, &tree, sizeof(tree)) != 0) {
        GGML_LOG_ERROR(
            "custom kernels refused: module was built for another ggml (tensor size %u, %u ops, %u types), "
            "this one has tensor size %u, %u ops, %u types\n",
            module.tree.tensor_size, module.tree.op_count, module.tree.type_count, tree.tensor_size, tree.op_count, tree.type_count);
        return false;
    }
    if (module.name == nullptr || module.try_nodes == nullptr) {
        GGML_LOG_ERROR("custom kernels refused: module without a name or without try_nodes\n");
        return false;
    }
    return true;
}

static int ggml_custom_kernels_register(const struct ggml_custom_kernels_module * module) {
    if (module == nullptr) {
        GGML_LOG_ERROR("custom kernels refused: no module given\n");
        return 1;
    }
    if (!ggml_custom_kernels_is_compatible(*module)) {
        return 1;
    }
    ggml_custom_kernels_registry & registry = ggml_custom_kernels_get_registry();
    std::lock_guard<std::mutex>    lock(registry.mutex);
    const int                      count = registry.count.load(std::memory_order_relaxed);
    for (int i = 0; i < count; ++i) {
        if (registry.modules[i] == module) {
            return 0;
        }
        if (strcmp(registry.modules[i]->name, module->name) == 0) {
            GGML_LOG_ERROR("custom kernels refused: a module named %s is already registered\n", module->name);
            return 1;
        }
    }
    if (count == GGML_CUSTOM_KERNELS_MAX_MODULES) {
        GGML_LOG_ERROR("custom kernels refused: %s would be one module more than the %d there is room for\n", module->name,
                       GGML_CUSTOM_KERNELS_MAX_MODULES);
        return 1;
    }
    registry.modules[count] = module;
    registry.count.store(count + 1, std::memory_order_release);
    GGML_LOG_DEBUG("custom kernels: %s %s\n", module->name, module->version ? module->version : "");
    return 0;
}

// Registers the modules linked into this backend, in the configured order.
static bool ggml_custom_kernels_register_linked() {
#define GGML_CUSTOM_KERNELS_REGISTER(module_name)                                                                 \
    if (ggml_custom_kernels_module_##module_name != nullptr) {                                                    \
        ggml_custom_kernels_register(ggml_custom_kernels_module_##module_name());                                 \
    } else {                                                                                                      \
        GGML_LOG_WARN("custom kernels: %s is configured but not linked into this backend\n", #module_name); \
    }
    GGML_CUSTOM_KERNELS_DEVICE(GGML_CUSTOM_KERNELS_REGISTER)
#undef GGML_CUSTOM_KERNELS_REGISTER
    return true;
}

// Name of a device's architecture, made once per device.
static const char * ggml_custom_kernels_arch(int device) {
    struct names {
        char text[GGML_CUDA_MAX_DEVICES][16] = {};

        names() {
            for (int i = 0; i < ggml_cuda_info().device_count; ++i) {
                const int cc = ggml_cuda_info().devices[i].cc;
                if (GGML_CUDA_CC_IS_AMD(cc)) {
                    snprintf(text[i], sizeof(text[i]), "gfx%x", (unsigned) (cc - GGML_CUDA_CC_OFFSET_AMD));
                } else {
                    snprintf(text[i], sizeof(text[i]), "sm_%d", cc / 10);
                }
            }
        }
    };
    static const names all;
    return all.text[device];
}

// Scratch of one try_nodes call. The pool wants its memory back in reverse order.
struct ggml_custom_kernels_scratch {
    struct entry {
        void * pointer;
        size_t actual;
        bool   done;
    };

    ggml_cuda_pool &   pool;
    std::vector<entry> entries;

    explicit ggml_custom_kernels_scratch(ggml_cuda_pool & pool) : pool(pool) {}

    ~ggml_custom_kernels_scratch() {
        while (!entries.empty()) {
            pop();
        }
    }

    void pop() {
        pool.free(entries.back().pointer, entries.back().actual);
        entries.pop_back();
    }

    static void * alloc(const struct ggml_custom_kernels_env * env, size_t bytes) {
        auto & scratch = *static_cast<ggml_custom_kernels_scratch *>(env->context);
        size_t actual  = 0;
        void * pointer = scratch.pool.alloc(bytes > 0 ? bytes : 1, &actual);
        scratch.entries.push_back({ pointer, actual, false });
        return pointer;
    }

    static void free(const struct ggml_custom_kernels_env * env, void * pointer) {
        auto & scratch = *static_cast<ggml_custom_kernels_scratch *>(env->context);
        for (entry & one : scratch.entries) {
            one.done = one.done || one.pointer == pointer;
        }
        while (!scratch.entries.empty() && scratch.entries.back().done) {
            scratch.pop();
        }
    }
};

// How many nodes from first_node on a module has run; 0 leaves the node to the backend's own kernels.
static int ggml_custom_kernels_try(ggml_backend_cuda_context & ctx, ggml_cgraph * cgraph, int first_node, int max_nodes) {
    static const bool                    linked   = ggml_custom_kernels_register_linked();
    static ggml_custom_kernels_registry & registry = ggml_custom_kernels_get_registry();
    GGML_UNUSED(linked);

    const int count = registry.count.load(std::memory_order_acquire);
    if (count == 0) {
        return 0;
    }

    const auto &                device = ggml_cuda_info().devices[ctx.device];
    ggml_custom_kernels_scratch scratch(ctx.pool());

    struct ggml_custom_kernels_env env = {};
    env.size                           = sizeof(env);
    env.abi                            = GGML_CUSTOM_KERNELS_ABI;
#ifdef GGML_USE_HIP
    env.platform = GGML_CUSTOM_KERNELS_HIP;
#else
    env.platform = GGML_CUSTOM_KERNELS_CUDA;
#endif
    env.device        = ctx.device;
    env.cc            = device.cc;
    env.n_cu          = device.nsm;
    env.warp_size     = device.warp_size;
    env.max_nodes     = max_nodes;
    env.lds_limit     = device.smpbo;
    env.arch          = ggml_custom_kernels_arch(ctx.device);
    env.stream        = ctx.stream();
    env.context       = &scratch;
    env.scratch_alloc = ggml_custom_kernels_scratch::alloc;
    env.scratch_free  = ggml_custom_kernels_scratch::free;

    for (int i = 0; i < count; ++i) {
        const int nodes = registry.modules[i]->try_nodes(&env, cgraph, first_node);
        GGML_ASSERT(nodes >= 0 && nodes <= max_nodes && "a module of custom kernels took more nodes than it may");
        if (nodes > 0) {
            CUDA_CHECK(cudaGetLastError());
            return nodes;
        }
    }
    return 0;
}
