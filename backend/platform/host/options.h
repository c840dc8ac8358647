// The host platform's environment variables:
//
//     WAVESMITH_HOST_CHECKED=1      use the checked kernels: every access is checked, LDS starts poisoned
//     WAVESMITH_HOST_RACECHECK=1    checked kernels that also look for LDS races
//     WAVESMITH_HOST_ORDER=<seed>   random order of threads and blocks, repeatable by the seed (decimal, below 2^64)
//
// Unset, empty and "0" mean off, except that WAVESMITH_HOST_ORDER=0 is the seed 0.
#pragma once

#include <stdint.h>

#include <string>

namespace wavesmith::host {

struct Options {
    bool     race_check   = false;
    bool     random_order = false;
    uint64_t seed         = 0;
};

// Reads the environment. Returns "" or one line saying which variable is malformed and how.
std::string read_options(Options & options);

// True if WAVESMITH_HOST_CHECKED or WAVESMITH_HOST_RACECHECK asks for checked kernels.
bool checked_requested();

}  // namespace wavesmith::host
