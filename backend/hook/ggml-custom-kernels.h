/* C interface between ggml's GPU backend (HIP or CUDA) and a module of custom kernels.
 *
 * A module exports one function per name N of the CMake variable GGML_CUSTOM_KERNELS,
 *
 *     const struct ggml_custom_kernels_module * ggml_custom_kernels_module_N(void);
 *
 * and is linked into ggml-hip or ggml-cuda. A library loaded later may instead fetch "ggml_custom_kernels_register" with
 * ggml_backend_reg_get_proc_address and hand its module to that function.
 *
 * Before a backend runs a node of its graph, it asks each module in turn. The first that answers above zero has run that
 * many nodes; when all answer zero the backend's own kernels run the node. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ggml.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Raised with every change of the structs below. A module built with another number is refused. */
#define GGML_CUSTOM_KERNELS_ABI 1

/* Most modules that one backend takes. */
#define GGML_CUSTOM_KERNELS_MAX_MODULES 8

struct ggml_cgraph;

enum ggml_custom_kernels_platform {
    GGML_CUSTOM_KERNELS_HIP  = 1,
    GGML_CUSTOM_KERNELS_CUDA = 2,
};

/* Where and with what a module runs. Valid during one call of try_nodes; `arch` lives as long as the process. */
struct ggml_custom_kernels_env {
    uint32_t     size;       /* sizeof(struct ggml_custom_kernels_env) of the caller */
    uint32_t     abi;        /* GGML_CUSTOM_KERNELS_ABI of the caller */
    int32_t      platform;   /* enum ggml_custom_kernels_platform */
    int32_t      device;     /* ggml's device index; already the current device of the calling thread */
    int32_t      cc;         /* ggml's number of the architecture: 0x1000000 + hexadecimal gfx number on AMD, e.g. 0x1001100 */
    int32_t      n_cu;       /* compute units (streaming multiprocessors on CUDA) */
    int32_t      warp_size;  /* lanes: 32 or 64 */
    int32_t      max_nodes;  /* most nodes, from first_node on, that may be taken */
    size_t       lds_limit;  /* bytes of LDS (shared memory) that one workgroup may have */
    const char * arch;       /* "gfx1100", "sm_90", ... */
    void *       stream;     /* hipStream_t or cudaStream_t; the only one to launch on */
    void *       context;    /* opaque; for the two functions below */

    /* Device memory from the backend's pool, aligned to 256 bytes, usable by work on `stream`. Whatever is not freed when
     * try_nodes returns is freed then, so a plain kernel launch needs no scratch_free. Never NULL: the pool aborts as stock
     * does when the device has no memory left. */
    void * (*scratch_alloc)(const struct ggml_custom_kernels_env * env, size_t bytes);
    /* Gives memory back early. The pool is a stack: memory that is not on its top is freed when all above it is. */
    void (*scratch_free)(const struct ggml_custom_kernels_env * env, void * pointer);
};

/* What changes in ggml.h without its API version changing. Filled by GGML_CUSTOM_KERNELS_TREE where the module is compiled. */
struct ggml_custom_kernels_tree {
    uint32_t tensor_size; /* sizeof(struct ggml_tensor) */
    uint32_t op_count;    /* GGML_OP_COUNT */
    uint32_t type_count;  /* GGML_TYPE_COUNT */
};

#define GGML_CUSTOM_KERNELS_TREE { (uint32_t) sizeof(struct ggml_tensor), (uint32_t) GGML_OP_COUNT, (uint32_t) GGML_TYPE_COUNT }

struct ggml_custom_kernels_module {
    uint32_t                        size;    /* sizeof(struct ggml_custom_kernels_module) */
    uint32_t                        abi;     /* GGML_CUSTOM_KERNELS_ABI */
    struct ggml_custom_kernels_tree tree;    /* GGML_CUSTOM_KERNELS_TREE */
    const char *                    name;    /* as in GGML_CUSTOM_KERNELS; unique among the registered modules */
    const char *                    version; /* for messages */

    /* Runs nodes first_node ... first_node + n - 1 of the graph and returns n (1 ... env->max_nodes), or returns 0 without
     * having launched anything. A pure function of the tensors and the environment: the work may be captured into a graph
     * and replayed. It launches on env->stream only and neither synchronises, reads back nor allocates device memory itself.
     * Before it takes more than one node it checks that no result in between is used elsewhere and that no output overlays an
     * input that is still to be read. Called from several threads at once for different backends. */
    int (*try_nodes)(const struct ggml_custom_kernels_env * env, struct ggml_cgraph * graph, int first_node);
};

typedef const struct ggml_custom_kernels_module * (*ggml_custom_kernels_module_t)(void);

/* "ggml_custom_kernels_register". Returns 0 when the module is registered (or already was, same pointer); otherwise a line in
 * ggml's log says why it was refused. The module must stay loaded as long as the process. */
typedef int (*ggml_custom_kernels_register_t)(const struct ggml_custom_kernels_module * module);

#ifdef __cplusplus
}
#endif
