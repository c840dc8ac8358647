// What a launch of mmq gets.
#pragma once

#include "q8_1_blocks.h"

namespace wavesmith {

struct MmqArguments {
    const uint8_t * weights;             // first weight row of batch entry or expert 0
    const uint8_t * activations;         // blocks [ceil(k / 128)][activation_rows] (q8_1_blocks.h)
    uint8_t *       output;              // f32, element (row 0, column 0) of batch entry 0
    const int32_t * slots;               // MUL_MAT_ID: token * used + place, grouped by expert; else null
    const int32_t * slot_bounds;         // MUL_MAT_ID: expert e owns slots slot_bounds[e] up to slot_bounds[e + 1]; else null
    int32_t *       integer_sums;        // int32 [n][m][k / group], written by the checked host build alone; null
    int32_t         m;                   // weight rows
    int32_t         n;                   // columns of a batch entry (MUL_MAT) or of the fullest expert (MUL_MAT_ID)
    int32_t         k;                   // values of a row, whole blocks
    int32_t         activation_rows;     // rows of all batch entries of the activations
    int32_t         used;                // MUL_MAT_ID: experts per token; else 1
    int32_t         activation_columns;  // MUL_MAT_ID: rows of the activations per token, 1 or used
    int32_t         ne12;                // batch entries in dimension 2 of the activations
    int32_t         ratio2;              // batch entries of the activations per entry of the weights, dimension 2
    int32_t         ratio3;              // the same, dimension 3
    int64_t         nb01;                // bytes between weight rows
    int64_t         nb02;                // bytes between weight entries of dimension 2, or experts
    int64_t         nb03;                // bytes between weight entries of dimension 3
    int64_t         nb1;                 // bytes between output columns
    int64_t         nb2;                 // bytes between output entries of dimension 2, or tokens
    int64_t         nb3;                 // bytes between output entries of dimension 3
};

}  // namespace wavesmith
