// The compiled variants of mmq for one GGUF type: one per tile plan of each family (mmq_plans.inc) that the host library has. With
// WAVESMITH_ALL_ROWS those are all.
#pragma once

#include <vector>

#include "../arch/all.h"
#include "../kernels/mmq.h"
#include "host_kernel.h"
#include "mmq_row.h"

#ifndef WAVESMITH_ALL_ROWS
#    define WAVESMITH_ALL_ROWS 0
#endif

namespace wavesmith {

struct MmqVariant : MmqRow {
    HostKernel<MmqArguments> kernel;
};

struct MmqType {
    int                     ggml_type;
    const char *            name;
    Q8_1Layout              activations;  // that the kernel reads
    int                     block_values, block_bytes, alignment, group;  // group: values per integer sum
    std::vector<MmqVariant> variants;
};

template <class Quant, class Arch, int parts, bool wanted, class Tile> void add_mmq_variant(std::vector<MmqVariant> & variants, const char * plan) {
    if constexpr (parts == Quant::parts && wanted) {
        using Kernel = Mmq<Arch, Quant, Tile>;
        variants.push_back({ { Arch::family, plan, Tile::tile_m, Tile::tile_n, Kernel::lds_bytes }, host_kernel<Kernel>() });
    }
}

template <class Quant> MmqType make_mmq_type() {
    MmqType type = { Quant::ggml_type,    Quant::name,      Quant::step_values == 64 ? Q8_1Layout::d2s8 : Q8_1Layout::d4s8,
                     Quant::block_values, Quant::block_bytes, Quant::alignment,
                     Quant::step_values / Quant::parts, {} };
#define MMQ_PLAN(architecture, parts, tile_m, tile_n, waves_m, waves_n, stages, host)                                                   \
    add_mmq_variant<Quant, arch::architecture, parts, host || WAVESMITH_ALL_ROWS, MmqTile<tile_m, tile_n, waves_m, waves_n, stages>>( \
        type.variants, #tile_m "x" #tile_n);
#include "mmq_plans.inc"
#undef MMQ_PLAN
    return type;
}

}  // namespace wavesmith
