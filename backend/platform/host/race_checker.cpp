#include "race_checker.h"

namespace wavesmith::host {

void RaceChecker::reserve(uint32_t lds_bytes) {
    const size_t words = (size_t(lds_bytes) + 3) / 4;
    if (words_.size() < words) {
        words_.resize(words);
    }
}

RaceChecker::Race RaceChecker::access(uint32_t thread, uint32_t byte_offset, uint32_t bytes, bool is_write) {
    Race first;
    for (uint32_t w = byte_offset / 4; w <= (byte_offset + bytes - 1) / 4; w++) {
        if (!first.found) {
            first             = conflict(words_[w], interval_, thread, is_write);
            first.word_offset = 4 * w;
        }
        note(words_[w], interval_, thread, is_write);
    }
    return first;
}

RaceChecker::Race RaceChecker::conflict(const Word & word, uint64_t interval, uint32_t thread, bool is_write) {
    Race race;
    if (word.written == interval && word.writer != thread) {
        race.found        = true;
        race.other_thread = word.writer;
        race.other_wrote  = true;
    } else if (is_write && word.read == interval && (word.reader != thread || word.other_reader != thread)) {
        race.found        = true;
        race.other_thread = word.reader != thread ? word.reader : word.other_reader;
        race.other_wrote  = false;
    }
    return race;
}

void RaceChecker::note(Word & word, uint64_t interval, uint32_t thread, bool is_write) {
    if (is_write) {
        word.written = interval;
        word.writer  = uint16_t(thread);
    } else if (word.read != interval) {
        word.read         = interval;
        word.reader       = uint16_t(thread);
        word.other_reader = uint16_t(thread);
    } else if (word.reader != thread) {
        word.other_reader = uint16_t(thread);
    }
}

}  // namespace wavesmith::host
