#include "mmq_types.h"

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

}  // namespace wavesmith
