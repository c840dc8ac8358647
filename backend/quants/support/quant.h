// What a kernel needs to know of a quantised GGUF type, and helpers that the type headers share.
//
// Kernels walk a weight row in tiles of 128 values. quants/<type>.h defines one struct per type in namespace
// wavesmith::quants:
//
//     struct Q4_K {
//         static constexpr const char * name;        // ggml's type name
//         static constexpr int ggml_type;            // ggml_type number
//         static constexpr int block_values;         // weights per block: 32, 64, 128 or 256
//         static constexpr int block_bytes;
//         static constexpr int alignment;            // of a block's address: what rows of whole blocks guarantee
//
//         // Integers. A step is 32 or 64 weights, which meet activations of one scale. Its integers are multiplied with the
//         // activations into `parts` sums: one of the whole step, or two of 16 values each. Every integer is a signed byte.
//         static constexpr int step_values;          // 32 or 64
//         static constexpr int parts;                // 1 or 2
//         static constexpr int chunks;               // units of loading per 128 values
//         static constexpr int pieces;               // runs of 16 values that a chunk holds; chunks * pieces = 8
//         struct Chunk;                              // a chunk's bytes as loaded, each byte of a row in one chunk of a tile
//         static Chunk load(simt, const uint8_t * row, int32_t k, int chunk);   // k: first value of the tile
//         static void  unpack(const Chunk &, int chunk, Bytes16 (&piece)[pieces]);
//         static constexpr int offset(int chunk, int piece);                    // first value of a piece within the tile
//
//         static constexpr bool scale_last;          // scales of so wide a range that they meet the sums after the activations'
//                                                    // scale (kernels/mmq.h); for one part without minimums; Defaults: false
//
//         // Scales: a weight is scale[part] * integer - minimum[i]. `minimums` (0, 1, 2 or 4) of them per step, each for
//         // step_values / minimums values.
//         static constexpr int minimums;
//         static constexpr int scale_steps;          // steps whose scales are loaded together: 1 or 2
//         struct Scales;                             // their bytes as loaded
//         static Scales    load_scales(simt, const uint8_t * row, int32_t k, int unit);    // unit: of scale_steps steps
//         static StepScale step_scale(const Scales &, int32_t k, int unit, int step);      // step: 0 … scale_steps - 1
//     };
//
// Scales and minimums are f32 and each is at most one rounded product of the block's factors with its integers, so they
// are the same on every platform. Block layouts: ggml/src/ggml-common.h.
#pragma once

#include "../../platform/simt.h"
#include "half.h"

namespace wavesmith::quants {

struct StepScale {
    float scale[2];
    float minimum[4];
};

// What a type has unless it says otherwise.
struct Defaults {
    static constexpr int  step_values = 32;
    static constexpr bool scale_last  = false;
};

constexpr int tile_values = 128;

// Reads at the alignment that the type guarantees.
template <int alignment, class Simt> WAVESMITH_DEVICE Bytes16 load16(const Simt & simt, const uint8_t * address) {
    return simt.template load<Bytes16, (alignment < 16 ? alignment : 16)>(address);
}

template <int alignment, class Simt> WAVESMITH_DEVICE Bytes8 load8(const Simt & simt, const uint8_t * address) {
    return simt.template load<Bytes8, (alignment < 8 ? alignment : 8)>(address);
}

template <int alignment, class Simt> WAVESMITH_DEVICE uint32_t load4(const Simt & simt, const uint8_t * address) {
    return simt.template load<uint32_t, (alignment < 4 ? alignment : 4)>(address);
}

template <class Simt> WAVESMITH_DEVICE uint32_t load2(const Simt & simt, const uint8_t * address) {
    return simt.template load<uint16_t>(address);
}

template <class Simt> WAVESMITH_DEVICE uint32_t load1(const Simt & simt, const uint8_t * address) {
    return simt.template load<uint8_t>(address);
}

// Byte `index` of a word, or of two.
WAVESMITH_DEVICE uint32_t byte_of(uint32_t word, int index) {
    return (word >> (8 * index)) & 0xFF;
}
WAVESMITH_DEVICE uint32_t byte_of(Bytes8 words, int index) {
    return byte_of(index < 4 ? words.word[0] : words.word[1], index % 4);
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

// Field `shift`, `mask` of each byte of `bits` added to the bytes of `low`, from bit `position` on.
WAVESMITH_DEVICE Bytes16 with_field(Bytes16 low, Bytes16 bits, int shift, uint32_t mask, int position) {
    const Bytes16 high = field(bits, shift, mask);
    WAVESMITH_UNROLL
    for (int i = 0; i < 4; ++i) {
        low.word[i] |= high.word[i] << position;
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
