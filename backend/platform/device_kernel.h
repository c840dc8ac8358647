// A kernel compiled for a GPU, behind the address that the runtime launches it by. platform/hip/launch.h and
// platform/cuda/launch.h make and launch them.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace wavesmith::device {

struct Grid {
    uint32_t x, y, z;
};

template <class Arguments> struct DeviceKernel {
    uint32_t     threads;
    uint32_t     lds_bytes;          // that a block needs
    uint32_t     dynamic_lds_bytes;  // of these, what a launch has to ask for
    const void * function;           // nullptr: not in this build
};

// Both return nullptr, or the runtime's words for what went wrong, and leave no error behind in the runtime.
//
// `prepare`: makes a launch possible on the current device, or says why it is not, for example because the build has no code
// for it. Launches nothing. Safe while the stream is captured.
const char * prepare(const void * function, uint32_t dynamic_lds_bytes, int device);
const char * launch(const void * function, Grid grid, uint32_t threads, uint32_t dynamic_lds_bytes, void * stream, void * arguments);

}  // namespace wavesmith::device
