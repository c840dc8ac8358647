// Runs of weights looked up in the codebooks of IQ1_S, IQ2_* and IQ3_*.
//
// An entry for eight weights holds a 2-bit code of each: byte j those of weight j (bits 0-1) and of weight j + 4 (bits 4-5). A
// code stands for one of the three values that the type's weights have.
#pragma once

#include "../../arch/bit_count.h"
#include "../../arch/byte_permute.h"
#include "quant.h"

namespace wavesmith::quants {

WAVESMITH_DEVICE uint32_t codes_of(uint32_t entry, int high) {
    return (entry >> (4 * high)) & 0x03030303u;
}

// Bits 0-3 of `bits` as bit 2 of four bytes.
WAVESMITH_DEVICE uint32_t spread_to_bit_2(uint32_t bits) {
    return ((bits & 0xF) * 0x00810204u) & 0x04040404u;
}

// The four bytes (1 … 127 each) of `values`, negated where bit 0-3 of `signs` is set.
WAVESMITH_DEVICE uint32_t with_signs(uint32_t values, uint32_t signs) {
    const uint32_t negative = ((signs & 0xF) * 0x00204081u) & 0x01010101u;
    return (values ^ (negative * 0xFFu)) + negative;
}

// Eight signs of which seven are stored: an even number of them is negative (ksigns_iq2xs in ggml/src/ggml-common.h).
WAVESMITH_DEVICE uint32_t eight_signs(uint32_t seven) {
    return (seven & 0x7F) | ((arch::bit_count(seven & 0x7F) & 1) << 7);
}

// Eight weights of an IQ2 type into words `first` and `first` + 1: codes stand for 8, 25 and 43, set bits of `signs` for negative.
WAVESMITH_DEVICE void put_iq2_weights(Bytes16 & piece, int first, uint32_t entry, uint32_t signs) {
    WAVESMITH_UNROLL
    for (int high = 0; high < 2; ++high) {
        piece.word[first + high] = arch::byte_permute(0x00D5E7F8u, 0x002B1908u, codes_of(entry, high) | spread_to_bit_2(signs >> (4 * high)));
    }
}

// Scales of the two groups of 16 weights whose nibbles `scales` holds: IQ2_XS and IQ2_S.
WAVESMITH_DEVICE StepScale iq2_step_scale(float d, uint32_t scales) {
    return { { d * (float(2 * (scales & 0xF) + 1) * 0.125f), d * (float(2 * (scales >> 4) + 1) * 0.125f) }, {} };
}

}  // namespace wavesmith::quants
