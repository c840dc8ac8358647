// What a kernel needs to know of a quantised GGUF type, and helpers that the type headers share.
//
// quants/<type>.h defines one struct per type in namespace wavesmith::quants:
//
//     struct Q4_K {
//         static constexpr const char * name;        // ggml's type name
//         static constexpr int ggml_type;            // ggml_type number
//         static constexpr int block_values;         // weights per block
//         static constexpr int block_bytes;
//         static constexpr int alignment;            // of a block's address: what rows of whole blocks guarantee
//         static constexpr int group;                // weights that share one scale: 16 or 32
//         static constexpr bool has_minimum;
//
//         // Weights 16*part … 16*part+15 of a block as 16 signed bytes in order.
//         template <class Simt> static Bytes16 unpack(const Simt &, const uint8_t * block, int part);
//         // Scale and minimum of weights group*index … of a block.
//         template <class Simt> static Scale scale(const Simt &, const uint8_t * block, int index);
//     };
//
// A weight is scale * unpacked - minimum. Scale and minimum are f32 and each is one rounded product of the block's f16
// factors with its integers, so they are the same on every platform. Block layouts: ggml/src/ggml-common.h.
#pragma once

#include "../../platform/simt.h"
#include "half.h"

namespace wavesmith::quants {

struct Scale {
    float scale;
    float minimum;
};

// Reads of a block, at the alignment that the type guarantees.
template <int alignment, class Simt> WAVESMITH_DEVICE Bytes16 load16(const Simt & simt, const uint8_t * address) {
    return simt.template load<Bytes16, (alignment < 16 ? alignment : 16)>(address);
}

template <int alignment, class Simt> WAVESMITH_DEVICE uint32_t load32(const Simt & simt, const uint8_t * address) {
    return simt.template load<uint32_t, (alignment < 4 ? alignment : 4)>(address);
}

template <class Simt> WAVESMITH_DEVICE uint32_t load8(const Simt & simt, const uint8_t * address) {
    return simt.template load<uint8_t>(address);
}

template <class Simt> WAVESMITH_DEVICE float load_half(const Simt & simt, const uint8_t * address) {
    return half_to_float(simt.template load<uint16_t>(address));
}

// The four bytes of each word shifted right and masked, for fields of `mask` within bytes.
WAVESMITH_DEVICE Bytes16 field(Bytes16 bytes, int shift, uint32_t mask) {
    Bytes16 result;
    WAVESMITH_UNROLL
    for (int i = 0; i < 4; ++i) {
        result.word[i] = (bytes.word[i] >> shift) & (mask * 0x01010101u);
    }
    return result;
}

WAVESMITH_DEVICE Bytes16 nibbles(Bytes16 bytes, int high) {
    return field(bytes, 4 * high, 0x0F);
}

// Adds the single bit `bit` of each byte of `bits` to each byte of `low`, as bit `position`.
WAVESMITH_DEVICE Bytes16 with_bit(Bytes16 low, Bytes16 bits, int bit, int position) {
    const Bytes16 one = field(bits, bit, 0x01);
    WAVESMITH_UNROLL
    for (int i = 0; i < 4; ++i) {
        low.word[i] |= one.word[i] << position;
    }
    return low;
}

// Bits 0 … 15 of `bits` added to the 16 bytes of `low` as bit 4: the fifth bits of Q5_0 and Q5_1.
WAVESMITH_DEVICE Bytes16 with_fifth_bits(Bytes16 low, uint32_t bits) {
    WAVESMITH_UNROLL
    for (int i = 0; i < 4; ++i) {
        // The product puts bit j of the four at bit 8 * j; the other partial products fall between.
        const uint32_t spread = (((bits >> (4 * i)) & 0xF) * 0x00204081u) & 0x01010101u;
        low.word[i] |= spread << 4;
    }
    return low;
}

// Each byte (0 … 127) less `value` (0 … 127), as signed bytes. The top bit keeps borrows inside their byte.
WAVESMITH_DEVICE Bytes16 minus(Bytes16 bytes, uint32_t value) {
    WAVESMITH_UNROLL
    for (int i = 0; i < 4; ++i) {
        bytes.word[i] = ((bytes.word[i] | 0x80808080u) - value * 0x01010101u) ^ 0x80808080u;
    }
    return bytes;
}

}  // namespace wavesmith::quants
