#include "device_mul_mat.h"

#include <string.h>

#include "common_kernels.h"
#include "device_choice.h"
#include "mmq_types.h"
#include "mul_mat_arguments.h"

namespace wavesmith {

namespace {

constexpr int64_t largest_grid_side = 65535;  // of dimensions y and z

bool same_memory(const Tensor & a, const Tensor & b) {
    return a.data == b.data && a.type == b.type && memcmp(a.ne, b.ne, sizeof(a.ne)) == 0 && memcmp(a.nb, b.nb, sizeof(a.nb)) == 0;
}

class DeviceRun {
  public:
    DeviceRun(const MulMat & problem, const DeviceEnvironment & environment, QuantizedActivations & quantized, std::string & message)
        : problem_(problem), environment_(environment), quantized_(quantized), message_(message) {}

    Result go(std::string * kernel) {
        const Result supported = supports(problem_, environment_.family, message_);
        if (supported != Result::ok) {
            return supported;
        }
        const MmqType * type = mmq_type(problem_.weights.type);
        if (!type) {
            return refuse("no kernel for float weights on a GPU");
        }
        layout_ = type->activations;
        const MmqVariant * variant =
            choose_device_variant(*type, environment_.family, sizes(), entry_count(problem_), environment_.compute_units, lds_limit());
        if (!variant) {
            return refuse(std::string("no tile plan of ") + family_name(environment_.family) + " fits " + std::to_string(environment_.lds_limit) +
                          " bytes of LDS");
        }
        const Result ready = prepare_all(*variant);
        if (ready != Result::ok) {
            return ready;
        }
        const Result result = launch_all(*variant);
        if (result == Result::ok && kernel) {
            *kernel = std::string("mmq ") + family_name(environment_.family) + " " + type->name + " " + variant->plan;
        }
        return result;
    }

  private:
    // Every slot may belong to one expert: the host does not know better. Blocks past an expert's last slot return at once.
    int64_t most_columns() const { return is_mul_mat_id(problem_) ? slot_count(problem_) : problem_.activations.ne[1]; }

    MmqSizes sizes() const {
        const int64_t columns = is_mul_mat_id(problem_) ? divide_up(slot_count(problem_), entry_count(problem_)) : problem_.activations.ne[1];
        return { problem_.weights.ne[1], columns, problem_.weights.ne[0] };
    }

    uint32_t lds_limit() const { return environment_.lds_limit < UINT32_MAX ? uint32_t(environment_.lds_limit) : UINT32_MAX; }

    Result refuse(std::string text) {
        message_ = std::move(text);
        return Result::unsupported;
    }

    template <class Arguments> Result prepare(const CompiledKernel<Arguments> & kernel) {
        if (!kernel.function) {
            return refuse("the kernel is not in this build");
        }
        if (kernel.lds_bytes > environment_.lds_limit) {
            return refuse("a block needs " + std::to_string(kernel.lds_bytes) + " bytes of LDS of " + std::to_string(environment_.lds_limit));
        }
        const char * error = device::prepare(kernel.function, kernel.dynamic_lds_bytes, environment_.device);
        return error ? refuse(std::string("the device cannot run the kernel: ") + error) : Result::ok;
    }

    Result prepare_all(const MmqVariant & variant) {
        if (divide_up(most_columns(), variant.tile_n) > largest_grid_side || entry_count(problem_) > largest_grid_side) {
            return refuse("a grid of more than " + std::to_string(largest_grid_side) + " blocks in a dimension");
        }
        Result result = prepare(variant.kernel);
        if (result == Result::ok) {
            result = prepare(quantize_q8_1_kernel(environment_.family, layout_));
        }
        if (result == Result::ok && is_mul_mat_id(problem_)) {
            result = prepare(expert_slots_kernel(environment_.family));
        }
        return result;
    }

    template <class Arguments> bool launch(const CompiledKernel<Arguments> & kernel, int64_t x, int64_t y, int64_t z, Arguments arguments) {
        const device::Grid grid  = { uint32_t(x), uint32_t(y), uint32_t(z) };
        const char *       error = device::launch(kernel.function, grid, kernel.threads, kernel.dynamic_lds_bytes, environment_.stream, &arguments);
        message_                 = error ? error : "";
        return !error;
    }

    template <class T> T * allocate(size_t bytes) { return static_cast<T *>(environment_.allocate(environment_.context, bytes)); }

    bool quantize() {
        if (quantized_.blocks && quantized_.layout == layout_ && same_memory(quantized_.source, problem_.activations)) {
            return true;
        }
        uint8_t * blocks = allocate<uint8_t>(quantized_bytes(problem_, layout_));
        if (!launch(quantize_q8_1_kernel(environment_.family, layout_), activation_rows(problem_),
                    divide_up(problem_.activations.ne[0], quantize_q8_1_values_per_block), 1, quantize_arguments(problem_, blocks))) {
            return false;
        }
        quantized_ = { problem_.activations, layout_, blocks };
        return true;
    }

    Result launch_all(const MmqVariant & variant) {
        SlotGroups groups;
        if (!quantize()) {
            return Result::fault;
        }
        if (is_mul_mat_id(problem_)) {
            groups.slots  = allocate<int32_t>(size_t(slot_count(problem_)) * sizeof(int32_t));
            groups.bounds = allocate<int32_t>(size_t(problem_.weights.ne[2] + 1) * sizeof(int32_t));
            if (!launch(expert_slots_kernel(environment_.family), problem_.weights.ne[2], 1, 1, expert_slots_arguments(problem_, groups))) {
                return Result::fault;
            }
        }
        const MmqArguments arguments = mmq_arguments(problem_, groups, most_columns(), quantized_.blocks);
        return launch(variant.kernel, divide_up(problem_.weights.ne[1], variant.tile_m), divide_up(most_columns(), variant.tile_n),
                      entry_count(problem_), arguments)
                   ? Result::ok
                   : Result::fault;
    }

    const MulMat &            problem_;
    const DeviceEnvironment & environment_;
    QuantizedActivations &    quantized_;
    std::string &             message_;
    Q8_1Layout                layout_ = Q8_1Layout::d4s8;
};

}  // namespace

Result run_on_device(const MulMat & problem, const DeviceEnvironment & environment, QuantizedActivations & quantized, std::string & message,
                     std::string * kernel) {
    return DeviceRun(problem, environment, quantized, message).go(kernel);
}

}  // namespace wavesmith
