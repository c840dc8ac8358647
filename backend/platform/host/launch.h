// Launches a kernel on the CPU: all blocks of a grid over the calling thread and the thread pool.
#pragma once

#include <stdint.h>

#include <string>
#include <type_traits>

#include "block.h"

namespace wavesmith::host {

struct Launch {
    const char *   kernel;        // for messages
    uint32_t       grid[3];       // blocks; any 0 launches nothing
    uint32_t       threads;       // per block: a multiple of the wave size, at most 1024
    uint32_t       lds_bytes;     // per block
    const Region * regions;       // buffers that the kernel may access, for the checked build
    int            region_count;
    int            workers;       // system threads to use, the calling one included; less than 1 counts as 1
};

// The part of a launch that does not depend on the kernel's type. `arguments` goes to `body` as it is.
std::string launch_blocks(const Launch & launch, uint32_t wave_size, uint32_t lds_limit, bool checked,
                          void (*body)(Block & block, uint32_t thread, const void * arguments), const void * arguments);

namespace detail {

template <class Kernel, class Simt> void run_thread(Block & block, uint32_t thread, const void * arguments) {
    using Arguments = typename Kernel::Arguments;
    static_assert(std::is_trivially_copyable<Arguments>::value, "arguments travel to a GPU by value");
    // A copy, as on a GPU: the compiler then knows that no store of the kernel changes its arguments.
    const Arguments own = *static_cast<const Arguments *>(arguments);
    const Simt      simt(block, thread);
    Kernel::run(simt, own);
}

}  // namespace detail

// Runs Kernel::run for every thread of every block and returns when all are done: "", or one line for the fault of the
// first block (in launch order) that has one, after which no further block is started. Also a message, and nothing run,
// for an impossible launch, a malformed environment variable (options.h) or no memory. Safe with concurrent callers.
template <class Kernel, class Simt> std::string launch(const Launch & launch, const typename Kernel::Arguments & arguments) {
    static_assert(Simt::is_host, "host::launch runs on the CPU");
    return launch_blocks(launch, Simt::wave_size, Simt::Arch::lds_bytes, Simt::is_checked, detail::run_thread<Kernel, Simt>, &arguments);
}

}  // namespace wavesmith::host
