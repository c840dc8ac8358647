// The activations of an mmq tile: d4s8 blocks loaded from memory into registers, then stored into LDS.
#pragma once

#include "mmq_weights.h"

namespace wavesmith {

template <class Quant, class Tile, class Matrix, uint32_t threads> class MmqColumns {
    using Lds     = MmqLds<Quant, Tile>;
    using Weights = MmqWeights<Quant, Tile, Matrix, threads>;

    static constexpr int block_bytes  = q8_1_block_bytes(Q8_1Layout::d4s8);
    static constexpr int header_bytes = q8_1_header_bytes(Q8_1Layout::d4s8);
    static constexpr int pieces       = Tile::tile_k / 16;
    static constexpr int piece_count  = (Tile::tile_n * pieces + int(threads) - 1) / int(threads);
    static constexpr int header_count = (Tile::tile_n + int(threads) - 1) / int(threads);

    struct Header {
        Bytes16 d;     // four f32
        Bytes16 sums;  // eight int16
    };

    int32_t piece_row_[piece_count];  // of the column's blocks; -1: the column does not exist
    int32_t header_row_[header_count];
    Bytes16 piece_[piece_count];
    Header  header_[header_count];

    template <class Simt> WAVESMITH_DEVICE static int item(const Simt & simt, int i) { return int(simt.thread()) + i * int(threads); }

  public:
    // `row_of(column)` gives the row of activations of a column of the tile, or -1.
    template <class Simt, class RowOf> WAVESMITH_DEVICE MmqColumns(const Simt & simt, const RowOf & row_of) {
        WAVESMITH_UNROLL
        for (int i = 0; i < piece_count; ++i) {
            piece_row_[i] = row_of(item(simt, i) / pieces);
        }
        WAVESMITH_UNROLL
        for (int i = 0; i < header_count; ++i) {
            header_row_[i] = row_of(item(simt, i));
        }
    }

    // `blocks`: the blocks of all rows for these 128 values of K.
    template <class Simt> WAVESMITH_DEVICE void load(const Simt & simt, const uint8_t * blocks) {
        WAVESMITH_UNROLL
        for (int i = 0; i < piece_count; ++i) {
            piece_[i] = {};
            if (piece_row_[i] >= 0) {
                const uint32_t offset = uint32_t(piece_row_[i]) * block_bytes + header_bytes + item(simt, i) % pieces * 16;
                piece_[i]             = simt.template load<Bytes16>(blocks + offset);
            }
        }
        WAVESMITH_UNROLL
        for (int i = 0; i < header_count; ++i) {
            header_[i] = {};
            if (header_row_[i] >= 0) {
                const uint32_t offset = uint32_t(header_row_[i]) * block_bytes;
                header_[i].d          = simt.template load<Bytes16>(blocks + offset);
                if constexpr (Quant::minimums > 0) {
                    header_[i].sums = simt.template load<Bytes16>(blocks + offset + 16);
                }
            }
        }
    }

    template <class Simt> WAVESMITH_DEVICE void store(const Simt & simt, uint32_t stage) const {
        WAVESMITH_UNROLL
        for (int i = 0; i < piece_count; ++i) {
            const int column = item(simt, i) / pieces;
            if (Tile::tile_n * pieces % threads == 0 || column < Tile::tile_n) {
                Weights::store_piece(simt, stage + Lds::columns + column * Lds::row_stride, item(simt, i) % pieces * 16, piece_[i]);
            }
        }
        WAVESMITH_UNROLL
        for (int i = 0; i < header_count; ++i) {
            if (Tile::tile_n % threads == 0 || item(simt, i) < Tile::tile_n) {
                store_factors(simt, stage, item(simt, i), header_[i]);
            }
        }
    }

  private:
    template <class Simt> WAVESMITH_DEVICE static void store_factors(const Simt & simt, uint32_t stage, int column, const Header & header) {
        WAVESMITH_UNROLL
        for (int step = 0; step < Lds::steps; ++step) {
            const float d = bits_to_float(header.d.word[step]);
            simt.lds_store(stage + Lds::factor(step, 0, column), d);
            const int32_t first  = int16_t(header.sums.word[step] & 0xFFFF);
            const int32_t second = int16_t(header.sums.word[step] >> 16);
            if constexpr (Quant::minimums == 1) {
                simt.lds_store(stage + Lds::factor(step, 1, column), d * float(first + second));
            } else if constexpr (Quant::minimums == 2) {
                simt.lds_store(stage + Lds::factor(step, 1, column), d * float(first));
                simt.lds_store(stage + Lds::factor(step, 2, column), d * float(second));
            }
        }
    }
};

}  // namespace wavesmith
