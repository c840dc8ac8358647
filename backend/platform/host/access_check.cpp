#include "access_check.h"

#include <string>

namespace wavesmith::host {

namespace {

std::string access_name(const char * space, bool is_write, size_t bytes) {
    return std::string(space) + (is_write ? " store of " : " load of ") + std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
}

bool contains(const Region & region, uintptr_t address, size_t bytes) {
    const uintptr_t begin = reinterpret_cast<uintptr_t>(region.begin);
    return address >= begin && bytes <= region.bytes && address - begin <= region.bytes - bytes;
}

size_t distance(const Region & region, uintptr_t address) {
    const uintptr_t begin = reinterpret_cast<uintptr_t>(region.begin);
    const uintptr_t end   = begin + region.bytes;
    return address < begin ? begin - address : address < end ? 0 : address - end;
}

// "weights + 4096 (weights has 4096 bytes)", by the region nearest to the address.
std::string place(const BlockSettings & settings, uintptr_t address) {
    const Region * nearest = nullptr;
    for (int i = 0; i < settings.region_count; i++) {
        const Region & region = settings.regions[i];
        if (region.bytes != 0 && (nearest == nullptr || distance(region, address) < distance(*nearest, address))) {
            nearest = &region;
        }
    }
    if (nearest == nullptr) {
        return "an address; the launch declares no buffer";
    }
    const uintptr_t begin = reinterpret_cast<uintptr_t>(nearest->begin);
    return std::string(nearest->name) + (address >= begin ? " + " : " - ") + std::to_string(address >= begin ? address - begin : begin - address) + " (" +
           nearest->name + " has " + std::to_string(nearest->bytes) + " bytes)";
}

void check_race(Block & block, RaceChecker & checker, uint32_t thread, bool is_write, uint32_t byte_offset, uint32_t bytes) {
    const RaceChecker::Race race = checker.access(thread, byte_offset, bytes, is_write);
    if (race.found) {
        block.fail(thread, "LDS race: " + access_name("LDS", is_write, bytes) + " at offset " + std::to_string(byte_offset) + "; thread " +
                               std::to_string(race.other_thread) + (race.other_wrote ? " wrote" : " read") + " the word at offset " +
                               std::to_string(race.word_offset) + " with no barrier between");
    }
}

}  // namespace

void check_lds_access(Block & block, uint32_t thread, bool is_write, uint32_t byte_offset, uint32_t bytes, uint32_t alignment) {
    const uint32_t lds_bytes = block.settings().lds_bytes;
    if (bytes > lds_bytes || byte_offset > lds_bytes - bytes) {
        block.fail(thread, access_name("LDS", is_write, bytes) + " at offset " + std::to_string(byte_offset) + " is outside the block's " +
                               std::to_string(lds_bytes) + " bytes of LDS");
    }
    if (byte_offset % alignment != 0) {
        block.fail(thread, access_name("LDS", is_write, bytes) + " at offset " + std::to_string(byte_offset) + " is not aligned to " +
                               std::to_string(alignment) + " bytes");
    }
    if (RaceChecker * checker = block.race_checker()) {
        check_race(block, *checker, thread, is_write, byte_offset, bytes);
    }
}

void check_global_access(Block & block, uint32_t thread, bool is_write, const void * pointer, size_t bytes, size_t alignment) {
    const BlockSettings & settings   = block.settings();
    const uintptr_t       address    = reinterpret_cast<uintptr_t>(pointer);
    bool                  is_inside  = false;
    bool                  is_allowed = false;
    for (int i = 0; i < settings.region_count && !is_allowed; i++) {
        const bool inside = contains(settings.regions[i], address, bytes);
        is_inside         = is_inside || inside;
        is_allowed        = inside && (settings.regions[i].writable || !is_write);
    }
    if (!is_allowed) {
        block.fail(thread, access_name("global", is_write, bytes) + " at " + place(settings, address) +
                               (is_inside ? " is a write to a read-only buffer" : " is outside every buffer of the launch"));
    }
    if (address % alignment != 0) {
        block.fail(thread, access_name("global", is_write, bytes) + " at " + place(settings, address) + " is not aligned to " +
                               std::to_string(alignment) + " bytes");
    }
}

void check_shuffle_lane(Block & block, uint32_t thread, uint32_t source_lane, uint32_t wave_size) {
    if (source_lane >= wave_size) {
        block.fail(thread, "shuffle from lane " + std::to_string(source_lane) + " of a wave of " + std::to_string(wave_size));
    }
}

}  // namespace wavesmith::host
