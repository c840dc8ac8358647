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
        case Family::rdna4: break;
    }
    return visitor(arch::Rdna4());
}

template <class Kernel> const HostKernel<typename Kernel::Arguments> & instance() {
    static const HostKernel<typename Kernel::Arguments> kernel = host_kernel<Kernel>();
    return kernel;
}

template <class Arch> const HostKernel<QuantizeQ8_1Arguments> & quantize_instance(Q8_1Layout layout) {
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
    static const GemmKernel kernel = { Weight::name, Weight::bytes, Kernel::waves, Kernel::columns, host_kernel<Kernel>() };
    return &kernel;
}

}  // namespace

const HostKernel<QuantizeQ8_1Arguments> & quantize_q8_1_kernel(Family family, Q8_1Layout layout) {
    return with_architecture(family, [&](auto architecture) -> const HostKernel<QuantizeQ8_1Arguments> & {
        return quantize_instance<decltype(architecture)>(layout);
    });
}

const HostKernel<ExpertSlotsArguments> & expert_slots_kernel(Family family) {
    return with_architecture(family, [&](auto architecture) -> const HostKernel<ExpertSlotsArguments> & {
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
