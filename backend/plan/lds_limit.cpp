#include "lds_limit.h"

#include <stdlib.h>

namespace wavesmith {

static const char * const variable = "WAVESMITH_LDS_LIMIT";

// Decimal digits alone, below 2^32 - 1.
static bool parse(const char * text, uint32_t & bytes) {
    uint64_t value = 0;
    for (const char * c = text; *c != '\0'; ++c) {
        if (*c < '0' || *c > '9') {
            return false;
        }
        value = value * 10 + uint64_t(*c - '0');
        if (value >= UINT32_MAX) {
            return false;
        }
    }
    bytes = uint32_t(value);
    return true;
}

LdsLimit read_lds_limit() {
    LdsLimit     limit;
    const char * value = getenv(variable);
    if (value != nullptr && *value != '\0' && !parse(value, limit.bytes)) {
        limit.error = std::string(variable) + " is \"" + value + "\"; expected a number of bytes below 2^32 - 1";
    }
    return limit;
}

std::string over_lds_limit(const std::string & kernel, uint32_t lds_bytes, const LdsLimit & limit) {
    return kernel + " needs " + std::to_string(lds_bytes) + " bytes of LDS, " + variable + " is " + std::to_string(limit.bytes);
}

}  // namespace wavesmith
