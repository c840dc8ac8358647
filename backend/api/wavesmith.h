/* C interface of the host library: what tools/wavesmith/host_library.py loads with ctypes.
 * Strides and sizes in bytes unless said otherwise; every function that can fail returns a wavesmith_status and leaves
 * a one-line message for wavesmith_last_error() (per calling thread). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WAVESMITH_API_VERSION 1

#define WAVESMITH_EXPORT __attribute__((visibility("default")))

enum wavesmith_status {
    WAVESMITH_OK               = 0,
    WAVESMITH_UNSUPPORTED      = 1,
    WAVESMITH_INVALID_ARGUMENT = 2,
    WAVESMITH_FAULT            = 3, /* out-of-range access, LDS race or diverging wave found by the checked build */
    WAVESMITH_OUT_OF_MEMORY    = 4,
};

/* Mirrors wavesmith::Tensor (plan/dispatch.h). */
struct wavesmith_tensor {
    int32_t type;
    void *  data;
    size_t  bytes;
    int64_t ne[4];
    int64_t nb[4];
};

struct wavesmith_mul_mat_problem {
    struct wavesmith_tensor weights;
    struct wavesmith_tensor activations;
    struct wavesmith_tensor output;
    struct wavesmith_tensor ids; /* data == NULL: MUL_MAT */
    int32_t *               integer_sums; /* NULL, or int32 [N][M][K / group], checked build only */
    size_t                  integer_sums_bytes;
    const char *            family;  /* "gcn" … "rdna4" */
    const char *            variant; /* NULL: the planner's choice */
};

WAVESMITH_EXPORT int          wavesmith_api_version(void);
WAVESMITH_EXPORT const char * wavesmith_version(void);
WAVESMITH_EXPORT const char * wavesmith_last_error(void);
WAVESMITH_EXPORT void         wavesmith_set_threads(int threads); /* 0: all the CPUs this process may use */
WAVESMITH_EXPORT int          wavesmith_scale_group(int ggml_type);
/* Name of the kernel and plan that the last successful call of this thread ran. */
WAVESMITH_EXPORT const char * wavesmith_last_kernel(void);
/* Comma-separated names of the tile plans that can run `ggml_type` on `family`, valid until the next call. */
WAVESMITH_EXPORT const char * wavesmith_variants(int ggml_type, const char * family);

WAVESMITH_EXPORT int wavesmith_mul_mat(const struct wavesmith_mul_mat_problem * problem);

/* x: float32 [n, k], rows `row_stride` bytes apart; layout "d4", "ds4", "d2s6" (stock's; out: uint8 [ceil(k/128), n, 144])
 * or "d4s8", "d2s8" (out: uint8 [ceil(k/128), n, 160]). */
WAVESMITH_EXPORT int wavesmith_quantize_q8_1(const float * x, size_t x_bytes, int64_t n, int64_t k, int64_t row_stride, const char * layout,
                                             const char * family, void * out, size_t out_bytes);

#ifdef __cplusplus
}
#endif
