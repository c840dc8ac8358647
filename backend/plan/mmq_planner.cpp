#include "mmq_planner.h"

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

const MmqVariant * choose_mmq_variant(const MmqType & type, Family family, int64_t columns, const char * plan) {
    const MmqVariant * best = nullptr;
    for (const MmqVariant & variant : type.variants) {
        if (variant.family != family) {
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

}  // namespace wavesmith
