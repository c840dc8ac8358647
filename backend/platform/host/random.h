// A small repeatable random generator (splitmix64, by its published constants).
#pragma once

#include <stdint.h>

namespace wavesmith::host {

class Random {
public:
    explicit Random(uint64_t seed = 0) : state_(seed) {}

    // A generator for item `index` of the sequence `seed`, unrelated to those of other items.
    Random(uint64_t seed, uint64_t index) : state_(seed) { state_ = next() ^ (index * 0xd1342543de82ef95ull); }

    uint64_t next() {
        uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
        z          = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z          = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        return z ^ (z >> 31);
    }

    // 0 … count-1; count > 0. The bias of the remainder does not matter for choosing an order.
    uint64_t below(uint64_t count) { return next() % count; }

private:
    uint64_t state_;
};

}  // namespace wavesmith::host
