// WAVESMITH_LDS_LIMIT=<bytes>: most LDS that a workgroup of a launch may have. It can only lower what a family allows.
#pragma once

#include <stdint.h>

#include <string>

namespace wavesmith {

struct LdsLimit {
    uint32_t    bytes = UINT32_MAX;
    std::string error;  // one line where the variable is no number of bytes; then nothing may be launched

    bool allows(uint32_t lds_bytes) const { return lds_bytes <= bytes; }
    bool is_set() const { return bytes != UINT32_MAX; }
};

// Reads the environment; unset and empty mean no limit.
LdsLimit read_lds_limit();

// "mmq of q4_K needs 20480 bytes of LDS, WAVESMITH_LDS_LIMIT is 16384".
std::string over_lds_limit(const std::string & kernel, uint32_t lds_bytes, const LdsLimit & limit);

}  // namespace wavesmith
