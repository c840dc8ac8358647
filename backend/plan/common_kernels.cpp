#include "common_kernels.h"

#include "../arch/all.h"

namespace wavesmith {

namespace {

// Calls the visitor with an object of the family's architecture.
template <class Visitor> decltype(auto) with_architecture(Family family, const Visitor & visitor) {
    switch (family) {
        case Family::gcn: return visitor(arch::Gcn());
        case Family::cdna2: return visitor(arch::Cdna2());
        case Family::cdna3: return visitor(arch::Cdna3());
        case Family::cdna4: return visitor(arch::Cdna4());
        case Family::rdna2: return visitor(arch::Rdna2());
        case Family::rdna3: return visitor(arch::Rdna3());
        case Family::rdna3_5: return visitor(arch::Rdna3_5());
        case Family::rdna4: return visitor(arch::Rdna4());
        case Family::cuda: break;
    }
    return visitor(arch::Nvidia());
}

template <class Kernel> const CompiledKernel<typename Kernel::Arguments> & instance() {
    static const CompiledKernel<typename Kernel::Arguments> kernel = compiled_kernel<Kernel>();
    return kernel;
}

template <class Arch> const CompiledKernel<QuantizeQ8_1Arguments> & quantize_instance(Q8_1Layout layout) {
    static_assert(QuantizeQ8_1<Arch, Q8_1Layout::d4>::values_per_block == quantize_q8_1_values_per_block, "");
    switch (layout) {
        case Q8_1Layout::d4: return instance<QuantizeQ8_1<Arch, Q8_1Layout::d4>>();
        case Q8_1Layout::ds4: return instance<QuantizeQ8_1<Arch, Q8_1Layout::ds4>>();
        case Q8_1Layout::d2s6: return instance<QuantizeQ8_1<Arch, Q8_1Layout::d2s6>>();
        case Q8_1Layout::d4s8: return instance<QuantizeQ8_1<Arch, Q8_1Layout::d4s8>>();
        case Q8_1Layout::d2s8: break;
    }
    return instance<QuantizeQ8_1<Arch, Q8_1Layout::d2s8>>();
}

template <class Arch, class Weight> const GemmKernel * gemm_instance() {
    using Kernel = Gemm<Arch, Weight>;
    static const GemmKernel kernel = { Weight::name, Weight::bytes, Kernel::waves, Kernel::columns, compiled_kernel<Kernel>() };
    return &kernel;
}

}  // namespace

const CompiledKernel<QuantizeQ8_1Arguments> & quantize_q8_1_kernel(Family family, Q8_1Layout layout) {
    return with_architecture(family, [&](auto architecture) -> const CompiledKernel<QuantizeQ8_1Arguments> & {
        return quantize_instance<decltype(architecture)>(layout);
    });
}

const CompiledKernel<ExpertSlotsArguments> & expert_slots_kernel(Family family) {
    return with_architecture(family, [&](auto architecture) -> const CompiledKernel<ExpertSlotsArguments> & {
        return instance<ExpertSlots<decltype(architecture)>>();
    });
}

const GemmKernel * gemm_kernel(Family family, int ggml_type) {
    return with_architecture(family, [&](auto architecture) -> const GemmKernel * {
        using Arch = decltype(architecture);
        switch (ggml_type) {
            case WeightF32::ggml_type: return gemm_instance<Arch, WeightF32>();
            case WeightF16::ggml_type: return gemm_instance<Arch, WeightF16>();
            case WeightBF16::ggml_type: return gemm_instance<Arch, WeightBF16>();
            default: return nullptr;
        }
    });
}

}  // namespace wavesmith
