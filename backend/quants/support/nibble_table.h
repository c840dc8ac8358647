// 4-bit codes that stand for 16 fixed bytes.
#pragma once

#include "../../arch/byte_permute.h"
#include "quant.h"

namespace wavesmith::quants {

// Value of code i: byte i % 4 of word i / 4.
struct NibbleTable {
    uint32_t word[4];
};

// The low (high: 1 takes the high) nibble of each of 16 bytes as its value in the table. Two lookups of eight values each; bit 3
// of the code chooses between them.
WAVESMITH_DEVICE Bytes16 looked_up(const NibbleTable & table, Bytes16 codes, int high) {
    Bytes16 values;
    WAVESMITH_UNROLL
    for (int i = 0; i < 4; ++i) {
        const uint32_t code  = codes.word[i] >> (4 * high);
        const uint32_t index = code & 0x07070707u;
        const uint32_t below = arch::byte_permute(table.word[1], table.word[0], index);
        const uint32_t above = arch::byte_permute(table.word[3], table.word[2], index);
        const uint32_t mask  = ((code >> 3) & 0x01010101u) * 0xFFu;
        values.word[i]       = (above & mask) | (below & ~mask);
    }
    return values;
}

}  // namespace wavesmith::quants
