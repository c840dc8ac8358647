// Finds LDS races: two different threads of a block touch one 4-byte word of LDS, at least one of them writing, with no
// barrier between. Lanes of one wave count as different threads.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <vector>

namespace wavesmith::host {

class RaceChecker {
public:
    struct Race {
        bool     found = false;
        uint32_t other_thread;  // that touched the word before
        bool     other_wrote;
        uint32_t word_offset;   // of the word in LDS, in bytes
    };

    // Prepares for LDS of this size. Throws std::bad_alloc.
    void reserve(uint32_t lds_bytes);

    // A barrier, or the start of a block: whatever was touched before can no longer race.
    void next_interval() { interval_++; }

    // Notes an access inside the reserved size; tells the first race it makes.
    Race access(uint32_t thread, uint32_t byte_offset, uint32_t bytes, bool is_write);

private:
    // The last interval in which the word was written and read, and by whom. Two different readers are kept, so that a
    // write by one of them is still seen to race with the other.
    struct Word {
        uint64_t written = 0;
        uint64_t read    = 0;
        uint16_t writer;
        uint16_t reader;
        uint16_t other_reader;  // equals reader while there is only one
    };

    static Race conflict(const Word & word, uint64_t interval, uint32_t thread, bool is_write);
    static void note(Word & word, uint64_t interval, uint32_t thread, bool is_write);

    std::vector<Word> words_;
    uint64_t          interval_ = 1;
};

}  // namespace wavesmith::host
