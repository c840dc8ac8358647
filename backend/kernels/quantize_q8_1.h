// quantize_q8_1: f32 activations to blocks of 128 int8 (q8_1_blocks.h).
//
// Per group of 32 values (64 in layouts d2s6 and d2s8): q = round(x * (127 / max|x|)), halves away from zero, and d = 1 / (127 / max|x|),
// as stock's quantize_mmq_q8_1 (ggml/src/ggml-cuda/quantize.cu) defines them. Unlike stock a group with a NaN gets d = NaN,
// so that the NaN reaches the output, and a sum past f16's range is clamped to +-65504.
#pragma once

#include "../quants/support/half.h"
#include "q8_1_blocks.h"

namespace wavesmith {

struct QuantizeQ8_1Arguments {
    const uint8_t * input;   // f32, any strides
    uint8_t *       output;  // blocks [ceil(k / 128)][ne1 * ne2 * ne3]
    int32_t         k;       // values of a row
    int32_t         ne1;     // rows, dimension 1
    int32_t         ne2;     // entries, dimension 2
    int32_t         ne3;     // entries, dimension 3
    int64_t         nb0;     // bytes between values of the input
    int64_t         nb1;     // bytes between its rows
    int64_t         nb2;     // bytes between its entries of dimension 2
    int64_t         nb3;     // bytes between its entries of dimension 3
};

template <class Arch_, Q8_1Layout layout> struct QuantizeQ8_1 {
    using Arch      = Arch_;
    using Arguments = QuantizeQ8_1Arguments;

    static constexpr int      values_per_thread = 4;
    static constexpr uint32_t threads           = 128;
    static constexpr int      values_per_block  = threads * values_per_thread;  // grid: (rows, ceil(k / values_per_block), 1)
    static constexpr uint32_t lds_bytes         = 0;
    static constexpr int      values_per_scale  = layout == Q8_1Layout::d2s6 || layout == Q8_1Layout::d2s8 ? 64 : 32;
    static constexpr int      values_per_sum    = layout == Q8_1Layout::ds4 ? 32 : 16;
    static constexpr bool     integer_sums      = layout == Q8_1Layout::d4s8 || layout == Q8_1Layout::d2s8;
    static constexpr int      block_bytes       = q8_1_block_bytes(layout);
    static constexpr int      header_bytes      = q8_1_header_bytes(layout);

    struct Values {
        float x[values_per_thread];
    };

    template <class Simt> WAVESMITH_DEVICE static void run(const Simt & simt, const Arguments & arguments) {
        const int32_t row = int32_t(simt.block_x());
        const int32_t k   = int32_t(simt.block_y()) * values_per_block + int32_t(simt.thread()) * values_per_thread;

        const Values values  = load(simt, arguments, row, k);
        const float  largest = largest_magnitude(simt, values);
        const float  inverse = 127.0f / largest;
        const float  scale   = 1.0f / inverse;

        int32_t q[values_per_thread];
        WAVESMITH_UNROLL
        for (int i = 0; i < values_per_thread; ++i) {
            q[i] = quantize(values.x[i] * inverse);
        }
        const int32_t integer_sum = integer_sums ? sum_of(simt, q[0] + q[1] + q[2] + q[3]) : 0;
        const float   float_sum   = layout == Q8_1Layout::ds4 || layout == Q8_1Layout::d2s6
                                        ? sum_of(simt, values.x[0] + values.x[1] + values.x[2] + values.x[3])
                                        : 0.0f;

        const int32_t block = k / q8_1_block_values;
        if (block >= (arguments.k + q8_1_block_values - 1) / q8_1_block_values) {
            return;
        }
        const int64_t rows  = int64_t(arguments.ne1) * arguments.ne2 * arguments.ne3;
        uint8_t *     bytes = arguments.output + (int64_t(block) * rows + row) * block_bytes;
        const int     index = k % q8_1_block_values;
        simt.template store<uint32_t>(bytes + header_bytes + index, pack(q));
        store_header(simt, bytes, index, scale, float_sum, integer_sum);
    }

  private:
    template <class Simt> WAVESMITH_DEVICE static Values load(const Simt & simt, const Arguments & arguments, int32_t row, int32_t k) {
        const int32_t   i1      = row % arguments.ne1;
        const int32_t   i2      = row / arguments.ne1 % arguments.ne2;
        const int32_t   i3      = row / arguments.ne1 / arguments.ne2;
        const uint8_t * address = arguments.input + i3 * arguments.nb3 + i2 * arguments.nb2 + i1 * arguments.nb1 + k * arguments.nb0;
        Values values = {};
        if (arguments.nb0 == sizeof(float) && k + values_per_thread <= arguments.k) {
            return simt.template load<Values, alignof(float)>(address);
        }
        WAVESMITH_UNROLL
        for (int i = 0; i < values_per_thread; ++i) {
            if (k + i < arguments.k) {
                values.x[i] = simt.template load<float>(address + i * arguments.nb0);
            }
        }
        return values;
    }

    // Largest |x| over the threads that share a scale; NaN if any value is NaN (a float maximum would drop it).
    // Magnitudes order as their bits do, and every NaN lies above infinity.
    template <class Simt> WAVESMITH_DEVICE static float largest_magnitude(const Simt & simt, const Values & values) {
        uint32_t largest = 0;
        WAVESMITH_UNROLL
        for (int i = 0; i < values_per_thread; ++i) {
            largest = maximum(largest, float_to_bits(values.x[i]) & 0x7FFFFFFFu);
        }
        WAVESMITH_UNROLL
        for (uint32_t offset = values_per_scale / (2 * values_per_thread); offset > 0; offset >>= 1) {
            largest = maximum(largest, simt.shuffle_xor(largest, offset));
        }
        return bits_to_float(largest);
    }

    WAVESMITH_DEVICE static uint32_t maximum(uint32_t a, uint32_t b) { return a > b ? a : b; }

    // Over the threads that share a sum, in stock's order: the thread's own values left to right, then a butterfly.
    template <class T, class Simt> WAVESMITH_DEVICE static T sum_of(const Simt & simt, T sum) {
        WAVESMITH_UNROLL
        for (uint32_t offset = values_per_sum / (2 * values_per_thread); offset > 0; offset >>= 1) {
            sum += simt.shuffle_xor(sum, offset);
        }
        return sum;
    }

    // NaN (a zero group: 0 * inf) gives 0; what is past int8 (a group of subnormals: x * inf) has d = 0 and gives 0 too.
    WAVESMITH_DEVICE static int32_t quantize(float scaled) {
        return scaled >= -128.0f && scaled <= 128.0f ? int32_t(__builtin_roundf(scaled)) : 0;
    }

    WAVESMITH_DEVICE static uint32_t pack(const int32_t (&q)[values_per_thread]) {
        return (uint32_t(q[0]) & 0xFF) | (uint32_t(q[1]) & 0xFF) << 8 | (uint32_t(q[2]) & 0xFF) << 16 | uint32_t(q[3]) << 24;
    }

    WAVESMITH_DEVICE static uint32_t finite_half(float value) {
        if (value > 65504.0f) {
            value = 65504.0f;
        } else if (value < -65504.0f) {
            value = -65504.0f;
        }
        return float_to_half(value);
    }

    template <class Simt>
    WAVESMITH_DEVICE static void store_header(const Simt & simt, uint8_t * bytes, int index, float scale, float float_sum, int32_t integer_sum) {
        if constexpr (layout == Q8_1Layout::d2s6) {
            if (index % 16 == 0 && index < 96) {
                simt.template store<uint16_t>(bytes + 4 + index / 16 * 2, uint16_t(finite_half(float_sum)));
            }
            if (index % 64 == 0) {
                simt.template store<uint16_t>(bytes + index / 64 * 2, uint16_t(float_to_half(scale)));
            }
            return;
        }
        if constexpr (integer_sums) {
            if (index % 16 == 0) {
                simt.template store<int16_t>(bytes + 16 + index / 16 * 2, int16_t(integer_sum));
            }
        }
        if (index % 32 == 0) {
            const uint32_t header = layout == Q8_1Layout::ds4 ? float_to_half(scale) | finite_half(float_sum) << 16 : float_to_bits(scale);
            simt.template store<uint32_t>(bytes + index / 32 * 4, header);
        }
    }
};

}  // namespace wavesmith
