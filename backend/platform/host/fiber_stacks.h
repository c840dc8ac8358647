// The stacks of one worker's fibers, made once and used for block after block.
#pragma once

#include <stddef.h>

#include <vector>

namespace wavesmith::host {

class FiberStacks {
public:
    static constexpr size_t usable_bytes = 64 * 1024;  // of each stack

    FiberStacks() = default;
    FiberStacks(const FiberStacks &)             = delete;
    FiberStacks & operator=(const FiberStacks &) = delete;
    ~FiberStacks();

    // Makes sure that stacks 0 … count-1 exist. Throws std::bad_alloc.
    void reserve(size_t count);

    // First byte of stack `index`. Below it lies a page that faults on access, where the system grants one.
    void * begin(size_t index) const { return stacks_[index].begin; }
    size_t bytes(size_t index) const { return stacks_[index].bytes; }

private:
    struct Stack {
        void * begin;
        size_t bytes;
    };
    struct Mapping {
        void * address;
        size_t bytes;
    };

    std::vector<Stack>   stacks_;
    std::vector<Mapping> mappings_;
};

}  // namespace wavesmith::host
