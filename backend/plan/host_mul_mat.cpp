// MUL_MAT and MUL_MAT_ID on the host platform: quantise the activations, group the experts' slots, multiply.
#include <stdlib.h>
#include <string.h>

#include <memory>
#include <vector>

#include "common_kernels.h"
#include "dispatch.h"
#include "lds_limit.h"
#include "mmq_choice.h"
#include "mmq_types.h"

namespace wavesmith {

namespace {

// Device memory on the host: aligned to a cache line, freed with its owner.
class Workspace {
  public:
    bool allocate(size_t bytes) {
        size_ = bytes;
        memory_.reset(aligned_alloc(64, (bytes + 63) / 64 * 64 + 64));
        return memory_ != nullptr;
    }
    template <class T = void> T * data() const { return static_cast<T *>(memory_.get()); }
    size_t size() const { return size_; }

  private:
    struct Free {
        void operator()(void * memory) const { free(memory); }
    };
    std::unique_ptr<void, Free> memory_;
    size_t                      size_ = 0;
};

// What the checked build may access, by name.
class Regions {
  public:
    void add(const char * name, const void * data, size_t bytes, bool writable) { regions_.push_back({ data, bytes, writable, name }); }
    host::Launch launch(const char * kernel, int64_t x, int64_t y, int64_t z, int workers) const {
        return { kernel, { uint32_t(x), uint32_t(y), uint32_t(z) }, 0, 0, regions_.data(), int(regions_.size()), workers };
    }

  private:
    std::vector<host::Region> regions_;
};

int64_t divide_up(int64_t value, int64_t step) {
    return (value + step - 1) / step;
}

// Bytes from a tensor's data to the end of its last element.
size_t extent(const Tensor & tensor, int64_t row_bytes) {
    size_t bytes = size_t(row_bytes);
    for (int i = 1; i < 4; ++i) {
        if (tensor.ne[i] == 0) {
            return 0;
        }
        bytes += size_t(tensor.ne[i] - 1) * size_t(tensor.nb[i]);
    }
    return bytes;
}

class Run {
  public:
    Run(const MulMat & problem, const HostOptions & options, std::string & message)
        : problem_(problem), w_(problem.weights), x_(problem.activations), y_(problem.output), options_(options), message_(message) {}

    Result go(std::string * kernel) {
        const Result supported = supports(problem_, options_.family, message_);
        if (supported != Result::ok) {
            return supported;
        }
        const Result sizes = check_buffers();
        if (sizes != Result::ok || empty()) {
            return sizes;
        }
        if (is_mul_mat_id(problem_)) {
            const Result grouped = group_slots();
            if (grouped != Result::ok) {
                return grouped;
            }
        }
        const MmqType * type = mmq_type(w_.type);
        return type ? mmq(*type, kernel) : gemm(kernel);
    }

  private:
    bool empty() const {
        return y_.ne[0] == 0 || y_.ne[1] == 0 || y_.ne[2] == 0 || y_.ne[3] == 0;
    }

    Result invalid(std::string text) {
        message_ = std::move(text);
        return Result::invalid_argument;
    }

    Result check_buffers() {
        const MmqType * type      = mmq_type(w_.type);
        const int64_t   row_bytes = type ? w_.ne[0] / type->block_values * type->block_bytes : w_.ne[0] * w_.nb[0];
        if (w_.bytes < extent(w_, row_bytes)) {
            return invalid("weights: " + std::to_string(w_.bytes) + " bytes for " + std::to_string(extent(w_, row_bytes)));
        }
        if (x_.bytes < extent(x_, x_.ne[0] ? (x_.ne[0] - 1) * x_.nb[0] + 4 : 0)) {
            return invalid("activations: buffer of " + std::to_string(x_.bytes) + " bytes is too small");
        }
        if (y_.bytes < extent(y_, y_.ne[0] * 4)) {
            return invalid("output: buffer of " + std::to_string(y_.bytes) + " bytes is too small");
        }
        if (is_mul_mat_id(problem_)) {
            return check_ids();
        }
        return Result::ok;
    }

    Result check_ids() {
        const Tensor & ids = problem_.ids;
        if (ids.bytes < extent(ids, ids.ne[0] ? (ids.ne[0] - 1) * ids.nb[0] + 4 : 0)) {
            return invalid("ids: buffer of " + std::to_string(ids.bytes) + " bytes is too small");
        }
        for (int64_t token = 0; token < ids.ne[1]; ++token) {
            for (int64_t place = 0; place < ids.ne[0]; ++place) {
                int32_t id;
                memcpy(&id, static_cast<const char *>(ids.data) + token * ids.nb[1] + place * ids.nb[0], sizeof(id));
                if (id < 0 || id >= w_.ne[2]) {
                    return invalid("expert " + std::to_string(id) + " of token " + std::to_string(token) + " is not one of " + std::to_string(w_.ne[2]));
                }
            }
        }
        return Result::ok;
    }

    Result fault(std::string text) {
        message_ = std::move(text);
        return message_.empty() ? Result::ok : Result::fault;
    }

    Result out_of_memory(const char * what) {
        message_ = std::string("out of memory for ") + what;
        return Result::out_of_memory;
    }

    // Slots of each expert, and the columns of the fullest one.
    Result group_slots() {
        const Tensor & ids = problem_.ids;
        const size_t   total = size_t(ids.ne[0] * ids.ne[1]);
        if (!slots_.allocate(total * 4) || !slot_bounds_.allocate(size_t(w_.ne[2] + 1) * 4)) {
            return out_of_memory("the experts' slots");
        }
        ExpertSlotsArguments arguments = {};
        arguments.ids         = static_cast<const uint8_t *>(ids.data);
        arguments.slots       = slots_.data<int32_t>();
        arguments.slot_bounds = slot_bounds_.data<int32_t>();
        arguments.tokens      = int32_t(ids.ne[1]);
        arguments.used        = int32_t(ids.ne[0]);
        arguments.experts     = int32_t(w_.ne[2]);
        arguments.nb0         = ids.nb[0];
        arguments.nb1         = ids.nb[1];
        Regions regions;
        regions.add("ids", ids.data, ids.bytes, false);
        regions.add("slots", slots_.data(), slots_.size(), true);
        regions.add("slot bounds", slot_bounds_.data(), slot_bounds_.size(), true);
        const Result result =
            fault(expert_slots_kernel(options_.family).run(regions.launch("expert_slots", w_.ne[2], 1, 1, options_.threads), arguments));
        const int32_t * bounds = slot_bounds_.data<int32_t>();
        for (int64_t expert = 0; result == Result::ok && expert < w_.ne[2]; ++expert) {
            columns_ = bounds[expert + 1] - bounds[expert] > columns_ ? bounds[expert + 1] - bounds[expert] : columns_;
        }
        return result;
    }

    bool    by_expert() const { return slots_.data() != nullptr; }
    int64_t columns() const { return by_expert() ? columns_ : x_.ne[1]; }
    int64_t batches() const { return by_expert() ? w_.ne[2] : x_.ne[2] * x_.ne[3]; }

    // What mmq's and gemm's arguments share.
    template <class Arguments> Arguments common_arguments() const {
        Arguments arguments = {};
        arguments.weights     = static_cast<const uint8_t *>(w_.data);
        arguments.output      = static_cast<uint8_t *>(const_cast<void *>(y_.data));
        arguments.slots       = slots_.data<int32_t>();
        arguments.slot_bounds = slot_bounds_.data<int32_t>();
        arguments.m           = int32_t(w_.ne[1]);
        arguments.n           = int32_t(columns());
        arguments.k           = int32_t(w_.ne[0]);
        arguments.used        = by_expert() ? int32_t(problem_.ids.ne[0]) : 1;
        arguments.activation_columns = int32_t(x_.ne[1]);
        arguments.ne12        = int32_t(x_.ne[2]);
        arguments.ratio2      = by_expert() ? 1 : int32_t(x_.ne[2] / w_.ne[2]);
        arguments.ratio3      = by_expert() ? 1 : int32_t(x_.ne[3] / w_.ne[3]);
        arguments.nb01        = w_.nb[1];
        arguments.nb02        = w_.nb[2];
        arguments.nb03        = w_.nb[3];
        arguments.nb1         = y_.nb[1];
        arguments.nb2         = y_.nb[2];
        arguments.nb3         = y_.nb[3];
        return arguments;
    }

    Regions common_regions() const {
        Regions regions;
        regions.add("weights", w_.data, w_.bytes, false);
        regions.add("output", y_.data, y_.bytes, true);
        regions.add("slots", slots_.data(), slots_.size(), false);
        regions.add("slot bounds", slot_bounds_.data(), slot_bounds_.size(), false);
        return regions;
    }

    Result quantize(Q8_1Layout layout) {
        const int64_t rows = x_.ne[1] * x_.ne[2] * x_.ne[3];
        if (!quantized_.allocate(size_t(divide_up(x_.ne[0], q8_1_block_values) * rows) * q8_1_block_bytes(layout))) {
            return out_of_memory("the quantised activations");
        }
        QuantizeQ8_1Arguments arguments = {};
        arguments.input  = static_cast<const uint8_t *>(x_.data);
        arguments.output = quantized_.data<uint8_t>();
        arguments.k      = int32_t(x_.ne[0]);
        arguments.ne1    = int32_t(x_.ne[1]);
        arguments.ne2    = int32_t(x_.ne[2]);
        arguments.ne3    = int32_t(x_.ne[3]);
        arguments.nb0    = x_.nb[0];
        arguments.nb1    = x_.nb[1];
        arguments.nb2    = x_.nb[2];
        arguments.nb3    = x_.nb[3];
        Regions regions;
        regions.add("activations", x_.data, x_.bytes, false);
        regions.add("quantised activations", quantized_.data(), quantized_.size(), true);
        const host::Launch launch =
            regions.launch("quantize_q8_1", rows, divide_up(x_.ne[0], quantize_q8_1_values_per_block), 1, options_.threads);
        return fault(quantize_q8_1_kernel(options_.family, layout).run(launch, arguments));
    }

    Result mmq(const MmqType & type, std::string * kernel) {
        const LdsLimit     limit   = read_lds_limit();
        const MmqVariant * variant = options_.variant ? find_mmq(type.variants, options_.family, options_.variant)
                                                      : choose_mmq(type.variants, options_.family, { w_.ne[1], columns(), w_.ne[0] }, limit.bytes);
        if (!variant) {
            return invalid(std::string("no tile plan \"") + options_.variant + "\" for " + type.name + " on " + family_name(options_.family));
        }
        if (!limit.allows(variant->lds_bytes)) {
            message_ = over_lds_limit(std::string("tile ") + variant->plan + " of " + type.name, variant->lds_bytes, limit);
            return Result::unsupported;
        }
        const Result quantized = quantize(type.activations);
        if (quantized != Result::ok) {
            return quantized;
        }
        MmqArguments arguments    = common_arguments<MmqArguments>();
        arguments.activations     = quantized_.data<uint8_t>();
        arguments.activation_rows = int32_t(x_.ne[1] * x_.ne[2] * x_.ne[3]);
        arguments.integer_sums    = problem_.integer_sums;
        const std::string name    = std::string("mmq ") + family_name(options_.family) + " " + type.name + " " + variant->plan;
        Regions regions = common_regions();
        regions.add("quantised activations", quantized_.data(), quantized_.size(), false);
        regions.add("integer sums", problem_.integer_sums, problem_.integer_sums_bytes, true);
        const host::Launch launch = regions.launch(name.c_str(), divide_up(w_.ne[1], variant->tile_m), divide_up(columns(), variant->tile_n),
                                                   batches(), options_.threads);
        return finish(fault(variant->kernel.run(launch, arguments)), name, kernel);
    }

    Result gemm(std::string * kernel) {
        if (options_.variant) {
            return invalid(std::string("no variant \"") + options_.variant + "\" of gemm");
        }
        const GemmKernel * gemm      = gemm_kernel(options_.family, w_.type);
        GemmArguments      arguments = common_arguments<GemmArguments>();
        arguments.activations = static_cast<const uint8_t *>(x_.data);
        arguments.nb10        = x_.nb[0];
        arguments.nb11        = x_.nb[1];
        arguments.nb12        = x_.nb[2];
        arguments.nb13        = x_.nb[3];
        const std::string name = std::string("gemm ") + family_name(options_.family) + " " + gemm->type_name;
        Regions regions = common_regions();
        regions.add("activations", x_.data, x_.bytes, false);
        const host::Launch launch =
            regions.launch(name.c_str(), divide_up(w_.ne[1], gemm->rows), divide_up(columns(), gemm->columns), batches(), options_.threads);
        return finish(fault(gemm->kernel.run(launch, arguments)), name, kernel);
    }

    static Result finish(Result result, const std::string & name, std::string * kernel) {
        if (kernel && result == Result::ok) {
            *kernel = name;
        }
        return result;
    }

    const MulMat &      problem_;
    const Tensor &      w_, &x_, &y_;
    const HostOptions & options_;
    std::string &       message_;
    Workspace           quantized_, slots_, slot_bounds_;
    int32_t             columns_ = 0;
};

}  // namespace

Result run(const MulMat & problem, const HostOptions & options, std::string & message, std::string * kernel) {
    return Run(problem, options, message).go(kernel);
}

}  // namespace wavesmith
