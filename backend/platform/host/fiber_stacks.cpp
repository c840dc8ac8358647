#include "fiber_stacks.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>

namespace wavesmith::host {

namespace {

constexpr size_t line_bytes        = 64;
constexpr size_t colours           = 64;  // cache lines in the 4 KiB after which a level-one cache's sets repeat
constexpr size_t stacks_per_mapping = 64;

size_t page_bytes() {
    static const size_t bytes = size_t(sysconf(_SC_PAGESIZE));
    return bytes;
}

size_t round_up(size_t value, size_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}

// The lanes of a wave use the same depth of their stacks at the same time. Stacks that begin at the same place of a
// page would all fight for the same few cache sets, so each starts some lines lower than its page's end.
size_t colour_bytes(size_t index) {
    return (index * 37 % colours) * line_bytes;
}

}  // namespace

void FiberStacks::reserve(size_t count) {
    const size_t page   = page_bytes();
    const size_t stride = page + round_up(usable_bytes + colours * line_bytes, page);
    while (stacks_.size() < count) {
        const size_t bytes   = stride * stacks_per_mapping;
        void *       address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (address == MAP_FAILED) {
            throw std::bad_alloc();
        }
        mappings_.push_back({ address, bytes });
        for (size_t i = 0; i < stacks_per_mapping; i++) {
            char * guard = static_cast<char *>(address) + i * stride;
            // Each guard splits a mapping and the system limits their number (65530 by default). With hundreds of workers
            // it may refuse; the stacks then work without guards.
            (void) mprotect(guard, page, PROT_NONE);
            stacks_.push_back({ guard + page, stride - page - colour_bytes(stacks_.size()) });
        }
    }
}

FiberStacks::~FiberStacks() {
    for (const Mapping & mapping : mappings_) {
        munmap(mapping.address, mapping.bytes);
    }
}

}  // namespace wavesmith::host
