// The checks that the checked build makes on every access. A violation ends the block with an error naming kernel,
// block, thread and the access.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "block.h"

namespace wavesmith::host {

// Inside the launch's LDS, aligned, and free of races where the race checker is on.
void check_lds_access(Block & block, uint32_t thread, bool is_write, uint32_t byte_offset, uint32_t bytes, uint32_t alignment);

// Wholly inside one of the launch's regions, one that is writable for a write, and aligned.
void check_global_access(Block & block, uint32_t thread, bool is_write, const void * address, size_t bytes, size_t alignment);

// The lane that a shuffle reads from exists.
void check_shuffle_lane(Block & block, uint32_t thread, uint32_t source_lane, uint32_t wave_size);

}  // namespace wavesmith::host
