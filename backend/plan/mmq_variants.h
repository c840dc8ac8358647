// The compiled variants of mmq for one GGUF type: one per tile plan of each family (mmq_plans.inc).
#pragma once

#include <vector>

#include "../arch/all.h"
#include "../kernels/mmq.h"
#include "host_kernel.h"

namespace wavesmith {

struct MmqVariant {
    Family                   family;
    const char *             plan;  // "tile_m x tile_n", as in "64x16"
    int                      tile_m, tile_n;
    HostKernel<MmqArguments> kernel;
};

struct MmqType {
    int                     ggml_type;
    const char *            name;
    int                     block_values, block_bytes, alignment, group;
    std::vector<MmqVariant> variants;
};

template <class Quant, class Arch, int group, int tile_m, int tile_n, int waves_m, int waves_n>
void add_mmq_variant(std::vector<MmqVariant> & variants, const char * plan) {
    if constexpr (group == Quant::group) {
        using Kernel = Mmq<Arch, Quant, MmqTile<tile_m, tile_n, waves_m, waves_n>>;
        variants.push_back({ Arch::family, plan, tile_m, tile_n, host_kernel<Kernel>() });
    }
}

template <class Quant> MmqType make_mmq_type() {
    MmqType type = { Quant::ggml_type, Quant::name, Quant::block_values, Quant::block_bytes, Quant::alignment, Quant::group, {} };
#define MMQ_PLAN(architecture, group, tile_m, tile_n, waves_m, waves_n)                                                          \
    add_mmq_variant<Quant, arch::architecture, group, tile_m, tile_n, waves_m, waves_n>(type.variants, #tile_m "x" #tile_n);
#include "mmq_plans.inc"
#undef MMQ_PLAN
    return type;
}

}  // namespace wavesmith
