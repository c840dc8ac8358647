#include "device_choice.h"

namespace wavesmith {

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

const MmqVariant * choose_device_variant(const MmqType & type, Family family, const MmqSizes & sizes, int64_t entries, int compute_units,
                                         uint32_t lds_limit) {
    const MmqVariant * best  = nullptr;
    double             least = 0;
    for (const MmqVariant & variant : type.variants) {
        if (variant.family != family || variant.lds_bytes > lds_limit || variant.cost[0] == 0 || compute_units < 1) {
            continue;
        }
        const int64_t blocks = (sizes.m + variant.tile_m - 1) / variant.tile_m * ((sizes.n + variant.tile_n - 1) / variant.tile_n) * entries;
        const double  time   = time_of(variant, blocks, compute_units);
        if (!best || time < least) {
            best  = &variant;
            least = time;
        }
    }
    return best ? best : choose_mmq(type.variants, family, sizes, lds_limit);
}

}  // namespace wavesmith
