// gemm: f16, bf16 or f32 weights x f32 activations, any M, N and K, without rounding the activations.
//
// A wave computes one weight row against up to four columns: lane l takes the values k = l, l + wave_size, … in order with
// fma in f32, then the lanes' sums are added in a butterfly. The order depends on the wave size alone.
#pragma once

#include "../quants/support/half.h"

namespace wavesmith {

struct GemmArguments {
    const uint8_t * weights;             // first weight row of batch entry or expert 0
    const uint8_t * activations;         // f32, any strides
    uint8_t *       output;              // f32, element (row 0, column 0) of batch entry 0
    const int32_t * slots;               // MUL_MAT_ID: token * used + place, grouped by expert; else null
    const int32_t * slot_bounds;         // MUL_MAT_ID: expert e owns slots slot_bounds[e] up to slot_bounds[e + 1]; else null
    int32_t         m;                   // weight rows
    int32_t         n;                   // columns of a batch entry (MUL_MAT) or of the fullest expert (MUL_MAT_ID)
    int32_t         k;                   // values of a row
    int32_t         used;                // MUL_MAT_ID: experts per token; else 1
    int32_t         activation_columns;  // MUL_MAT_ID: rows of the activations per token, 1 or used
    int32_t         ne12;                // batch entries in dimension 2 of the activations
    int32_t         ratio2;              // batch entries of the activations per entry of the weights, dimension 2
    int32_t         ratio3;              // the same, dimension 3
    int64_t         nb01;                // bytes between weight rows
    int64_t         nb02;                // bytes between weight entries of dimension 2, or experts
    int64_t         nb03;                // bytes between weight entries of dimension 3
    int64_t         nb10;                // bytes between values of an activation row
    int64_t         nb11;                // bytes between activation rows
    int64_t         nb12;                // bytes between activation entries of dimension 2, or tokens
    int64_t         nb13;                // bytes between activation entries of dimension 3
    int64_t         nb1;                 // bytes between output columns
    int64_t         nb2;                 // bytes between output entries of dimension 2, or tokens
    int64_t         nb3;                 // bytes between output entries of dimension 3
};

struct WeightF32 {
    static constexpr const char * name = "f32";
    static constexpr int ggml_type = 0;
    static constexpr int bytes     = 4;
    template <class Simt> WAVESMITH_DEVICE static float load(const Simt & simt, const uint8_t * address) {
        return simt.template load<float>(address);
    }
};

struct WeightF16 {
    static constexpr const char * name = "f16";
    static constexpr int ggml_type = 1;
    static constexpr int bytes     = 2;
    template <class Simt> WAVESMITH_DEVICE static float load(const Simt & simt, const uint8_t * address) {
        return half_to_float(simt.template load<uint16_t>(address));
    }
};

struct WeightBF16 {
    static constexpr const char * name = "bf16";
    static constexpr int ggml_type = 30;
    static constexpr int bytes     = 2;
    template <class Simt> WAVESMITH_DEVICE static float load(const Simt & simt, const uint8_t * address) {
        return bfloat16_to_float(simt.template load<uint16_t>(address));
    }
};

template <class Arch_, class Weight> struct Gemm {
    using Arch      = Arch_;
    using Arguments = GemmArguments;

    static constexpr int      waves     = 4;
    static constexpr int      columns   = 4;  // of one wave
    static constexpr uint32_t threads   = waves * Arch::wave_size;
    static constexpr uint32_t lds_bytes = 0;

    // Grid: (ceil(m / waves), ceil(n / columns), batch entries of src1 or experts).
    template <class Simt> WAVESMITH_DEVICE static void run(const Simt & simt, const Arguments & arguments) {
        const int32_t   z       = int32_t(simt.block_z());
        const int32_t   row     = int32_t(simt.block_x()) * waves + int32_t(simt.wave());
        const int32_t   column0 = int32_t(simt.block_y()) * columns;
        int32_t         count   = arguments.n;
        const int32_t * slots   = nullptr;
        const uint8_t * weights = arguments.weights + row * arguments.nb01;
        if (arguments.slots) {
            const int32_t begin = simt.template load<int32_t>(arguments.slot_bounds + z);
            count               = simt.template load<int32_t>(arguments.slot_bounds + z + 1) - begin;
            slots               = arguments.slots + begin;
            weights += z * arguments.nb02;
        } else {
            weights += z % arguments.ne12 / arguments.ratio2 * arguments.nb02 + z / arguments.ne12 / arguments.ratio3 * arguments.nb03;
        }
        if (row >= arguments.m || column0 >= count) {
            return;  // the same for all lanes of the wave
        }

        const uint8_t * input[columns];
        uint8_t *       output[columns];
        WAVESMITH_UNROLL
        for (int j = 0; j < columns; ++j) {
            const int32_t column = column0 + j < count ? column0 + j : count - 1;  // a masked column repeats the last one
            locate(simt, arguments, slots, z, column, input[j], output[j]);
        }

        float sum[columns] = {};
        for (int32_t k = int32_t(simt.lane()); k < arguments.k; k += int32_t(Arch::wave_size)) {
            const float weight = Weight::load(simt, weights + int64_t(k) * Weight::bytes);
            WAVESMITH_UNROLL
            for (int j = 0; j < columns; ++j) {
                sum[j] = __builtin_fmaf(weight, simt.template load<float>(input[j] + k * arguments.nb10), sum[j]);
            }
        }
        WAVESMITH_UNROLL
        for (int j = 0; j < columns; ++j) {
            const float total = wave_sum(simt, sum[j]);
            if (simt.lane() == 0 && column0 + j < count) {
                simt.template store<float>(output[j] + row * int64_t(sizeof(float)), total);
            }
        }
    }

  private:
    template <class Simt> WAVESMITH_DEVICE static float wave_sum(const Simt & simt, float sum) {
        WAVESMITH_UNROLL
        for (uint32_t offset = Arch::wave_size / 2; offset > 0; offset >>= 1) {
            sum += simt.shuffle_xor(sum, offset);
        }
        return sum;
    }

    template <class Simt>
    WAVESMITH_DEVICE static void locate(const Simt & simt, const Arguments & arguments, const int32_t * slots, int32_t z, int32_t column,
                                        const uint8_t *& input, uint8_t *& output) {
        if (slots) {
            const int32_t slot  = simt.template load<int32_t>(slots + column);
            const int32_t token = slot / arguments.used;
            const int32_t place = slot % arguments.used;
            input  = arguments.activations + token * arguments.nb12 + place % arguments.activation_columns * arguments.nb11;
            output = arguments.output + token * arguments.nb2 + place * arguments.nb1;
            return;
        }
        const int32_t i2 = z % arguments.ne12, i3 = z / arguments.ne12;
        input  = arguments.activations + i3 * arguments.nb13 + i2 * arguments.nb12 + column * arguments.nb11;
        output = arguments.output + i3 * arguments.nb3 + i2 * arguments.nb2 + column * arguments.nb1;
    }
};

}  // namespace wavesmith
