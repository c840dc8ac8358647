#include "wavesmith.h"

#include <sched.h>
#include <string.h>

#include <atomic>
#include <new>
#include <string>

#include "../plan/common_kernels.h"
#include "../plan/dispatch.h"
#include "../plan/mmq_types.h"

#ifndef WAVESMITH_VERSION
#    error "the build defines WAVESMITH_VERSION"
#endif

using namespace wavesmith;

namespace {

thread_local std::string last_error;
thread_local std::string last_kernel;
thread_local std::string last_variants;
std::atomic<int>         chosen_threads{ 0 };

int available_cpus() {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

int threads() {
    const int chosen = chosen_threads;
    return chosen > 0 ? chosen : available_cpus();
}

int fail(wavesmith_status status, std::string message) {
    last_error = std::move(message);
    return status;
}

wavesmith_status status_of(Result result) {
    switch (result) {
        case Result::ok: return WAVESMITH_OK;
        case Result::unsupported: return WAVESMITH_UNSUPPORTED;
        case Result::invalid_argument: return WAVESMITH_INVALID_ARGUMENT;
        case Result::fault: return WAVESMITH_FAULT;
        case Result::out_of_memory: break;
    }
    return WAVESMITH_OUT_OF_MEMORY;
}

Tensor tensor_of(const wavesmith_tensor & tensor) {
    Tensor result = { tensor.type, tensor.data, tensor.bytes, {}, {} };
    memcpy(result.ne, tensor.ne, sizeof(result.ne));
    memcpy(result.nb, tensor.nb, sizeof(result.nb));
    return result;
}

bool layout_from_name(const char * name, Q8_1Layout & layout) {
    const struct {
        const char * name;
        Q8_1Layout   layout;
    } layouts[] = { { "d4", Q8_1Layout::d4 }, { "ds4", Q8_1Layout::ds4 }, { "d2s6", Q8_1Layout::d2s6 }, { "d4s8", Q8_1Layout::d4s8 },
                  { "d2s8", Q8_1Layout::d2s8 } };
    for (const auto & known : layouts) {
        if (strcmp(known.name, name) == 0) {
            layout = known.layout;
            return true;
        }
    }
    return false;
}

// Nothing may throw through the C interface.
template <class Function> int guarded(const Function & function) {
    try {
        return function();
    } catch (const std::bad_alloc &) {
        return fail(WAVESMITH_OUT_OF_MEMORY, "out of memory");
    } catch (const std::exception & error) {
        return fail(WAVESMITH_FAULT, error.what());
    }
}

int mul_mat(const wavesmith_mul_mat_problem & source) {
    HostOptions options;
    options.threads = threads();
    options.variant = source.variant;
    if (!source.family || !family_from_name(source.family, options.family)) {
        return fail(WAVESMITH_INVALID_ARGUMENT, std::string("unknown family \"") + (source.family ? source.family : "") + "\"");
    }
    MulMat problem;
    problem.weights            = tensor_of(source.weights);
    problem.activations        = tensor_of(source.activations);
    problem.output             = tensor_of(source.output);
    problem.ids                = source.ids.data ? tensor_of(source.ids) : Tensor{};
    problem.integer_sums       = source.integer_sums;
    problem.integer_sums_bytes = source.integer_sums_bytes;
    std::string  message;
    const Result result = run(problem, options, message, &last_kernel);
    return result == Result::ok ? WAVESMITH_OK : fail(status_of(result), message);
}

int quantize(const float * x, size_t x_bytes, int64_t n, int64_t k, int64_t row_stride, Q8_1Layout layout, Family family, void * out,
             size_t out_bytes) {
    const int64_t blocks = (k + q8_1_block_values - 1) / q8_1_block_values;
    if (n < 0 || k < 0 || n > INT32_MAX || k > INT32_MAX || row_stride % 4 != 0 || row_stride < 4 * k) {
        return fail(WAVESMITH_INVALID_ARGUMENT, "quantize_q8_1: bad sizes");
    }
    if (n == 0 || k == 0) {
        return WAVESMITH_OK;
    }
    if (x_bytes < size_t((n - 1) * row_stride + 4 * k) || out_bytes < size_t(blocks * n) * q8_1_block_bytes(layout)) {
        return fail(WAVESMITH_INVALID_ARGUMENT, "quantize_q8_1: a buffer is too small");
    }
    QuantizeQ8_1Arguments arguments = {};
    arguments.input  = reinterpret_cast<const uint8_t *>(x);
    arguments.output = static_cast<uint8_t *>(out);
    arguments.k      = int32_t(k);
    arguments.ne1    = int32_t(n);
    arguments.ne2    = 1;
    arguments.ne3    = 1;
    arguments.nb0    = 4;
    arguments.nb1    = row_stride;
    const host::Region regions[] = { { x, x_bytes, false, "x" }, { out, out_bytes, true, "out" } };
    const uint32_t     blocks_y  = uint32_t((k + quantize_q8_1_values_per_block - 1) / quantize_q8_1_values_per_block);
    const host::Launch launch    = { "quantize_q8_1", { uint32_t(n), blocks_y, 1 }, 0, 0, regions, 2, threads() };
    const std::string  fault     = quantize_q8_1_kernel(family, layout).run(launch, arguments);
    return fault.empty() ? WAVESMITH_OK : fail(WAVESMITH_FAULT, fault);
}

}  // namespace

extern "C" {

int wavesmith_api_version(void) {
    return WAVESMITH_API_VERSION;
}

const char * wavesmith_version(void) {
    return WAVESMITH_VERSION;
}

const char * wavesmith_last_error(void) {
    return last_error.c_str();
}

const char * wavesmith_last_kernel(void) {
    return last_kernel.c_str();
}

void wavesmith_set_threads(int threads) {
    chosen_threads = threads > 0 ? threads : 0;
}

int wavesmith_scale_group(int ggml_type) {
    return scale_group(ggml_type);
}

const char * wavesmith_variants(int ggml_type, const char * family_text) {
    last_variants.clear();
    Family          family;
    const MmqType * type = mmq_type(ggml_type);
    if (type && family_text && family_from_name(family_text, family)) {
        for (const MmqVariant & variant : type->variants) {
            if (variant.family == family) {
                last_variants += (last_variants.empty() ? "" : ",") + std::string(variant.plan);
            }
        }
    }
    return last_variants.c_str();
}

int wavesmith_mul_mat(const wavesmith_mul_mat_problem * problem) {
    return guarded([&] { return mul_mat(*problem); });
}

int wavesmith_quantize_q8_1(const float * x, size_t x_bytes, int64_t n, int64_t k, int64_t row_stride, const char * layout_text,
                            const char * family_text, void * out, size_t out_bytes) {
    return guarded([&] {
        Q8_1Layout layout;
        Family     family;
        if (!layout_text || !layout_from_name(layout_text, layout)) {
            return fail(WAVESMITH_INVALID_ARGUMENT, std::string("unknown layout \"") + (layout_text ? layout_text : "") + "\"");
        }
        if (!family_text || !family_from_name(family_text, family)) {
            return fail(WAVESMITH_INVALID_ARGUMENT, std::string("unknown family \"") + (family_text ? family_text : "") + "\"");
        }
        return quantize(x, x_bytes, n, k, row_stride, layout, family, out, out_bytes);
    });
}

}  // extern "C"
