#include "mmq_planner.h"

#include <stdint.h>
#include <string.h>

namespace wavesmith {

// The list of types comes from the headers in quants/.
#define MMQ_TYPE(name) extern const MmqType mmq_type_##name;
#include "mmq_types.inc"
#undef MMQ_TYPE

const MmqType * mmq_type(int ggml_type) {
    static const MmqType * const types[] = {
#define MMQ_TYPE(name) &mmq_type_##name,
#include "mmq_types.inc"
#undef MMQ_TYPE
    };
    for (const MmqType * type : types) {
        if (type->ggml_type == ggml_type) {
            return type;
        }
    }
    return nullptr;
}

static const MmqVariant * choose(const MmqType & type, Family family, int64_t columns, const char * plan, size_t lds_limit) {
    const MmqVariant * best = nullptr;
    for (const MmqVariant & variant : type.variants) {
        if (variant.family != family || variant.kernel.lds_bytes > lds_limit) {
            continue;
        }
        if (plan) {
            if (strcmp(plan, variant.plan) == 0) {
                return &variant;
            }
            continue;
        }
        const bool covers      = variant.tile_n >= columns;
        const bool best_covers = best && best->tile_n >= columns;
        if (!best || (covers != best_covers ? covers : covers == (variant.tile_n < best->tile_n))) {
            best = &variant;
        }
    }
    return best;
}

const MmqVariant * choose_mmq_variant(const MmqType & type, Family family, int64_t columns, const char * plan) {
    return choose(type, family, columns, plan, SIZE_MAX);
}

// What `blocks` blocks of a plan take when they are spread over the compute units, as many at a time as can share one.
static double time_of(const MmqVariant & variant, int64_t blocks, int compute_units) {
    int sharing = 0;
    while (sharing < MmqVariant::most_sharing && variant.cost[sharing] > 0) {
        ++sharing;
    }
    const int64_t full = int64_t(compute_units) * sharing;
    const int64_t left = (blocks % full + compute_units - 1) / compute_units;
    return double(blocks / full) * variant.cost[sharing - 1] + (left ? variant.cost[left - 1] : 0);
}

const MmqVariant * choose_device_variant(const MmqType & type, Family family, const MmqShape & shape, int compute_units, size_t lds_limit) {
    const MmqVariant * best = nullptr;
    double             least = 0;
    for (const MmqVariant & variant : type.variants) {
        if (variant.family != family || variant.kernel.lds_bytes > lds_limit || variant.cost[0] == 0 || compute_units < 1) {
            continue;
        }
        const int64_t blocks = (shape.m + variant.tile_m - 1) / variant.tile_m * ((shape.n + variant.tile_n - 1) / variant.tile_n) * shape.entries;
        const double  time   = time_of(variant, blocks, compute_units);
        if (!best || time < least) {
            best  = &variant;
            least = time;
        }
    }
    return best ? best : choose(type, family, shape.n, nullptr, lds_limit);
}

}  // namespace wavesmith
