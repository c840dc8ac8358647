// A line that the compiler's scheduler moves nothing across.
#pragma once

#include "../platform/simt.h"

namespace wavesmith::arch {

// Without it, the scheduler spreads the work of many matrix products over each other until registers run out.
WAVESMITH_DEVICE void schedule_fence() {
#if WAVESMITH_DEVICE_COMPILE && defined(__HIP__)
    __builtin_amdgcn_sched_barrier(0);
#endif
}

}  // namespace wavesmith::arch
