// The activations of an mmq tile: d4s8 blocks loaded from memory into registers, then stored into LDS.
#pragma once

#include "mmq_weights.h"

namespace wavesmith {

template <class Quant, class Tile, class Matrix, uint32_t threads> class MmqColumns {
    using Lds     = MmqLds<Quant, Tile, Matrix>;
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

    uint32_t piece_offset_[piece_count];  // bytes from the first block of the tile's 128 values of K
    uint32_t header_offset_[header_count];
    Bytes16  piece_[piece_count];
    Header   header_[header_count];

    template <class Simt> WAVESMITH_DEVICE static int item(const Simt & simt, int i) { return int(simt.thread()) + i * int(threads); }

  public:
    // `row_of(column)` gives the row of activations of a column of the tile, for any column.
    template <class Simt, class RowOf> WAVESMITH_DEVICE MmqColumns(const Simt & simt, const RowOf & row_of) {
        WAVESMITH_UNROLL
        for (int i = 0; i < piece_count; ++i) {
            piece_offset_[i] = row_of(item(simt, i) / pieces) * block_bytes + header_bytes + item(simt, i) % pieces * 16;
        }
        WAVESMITH_UNROLL
        for (int i = 0; i < header_count; ++i) {
            header_offset_[i] = row_of(item(simt, i)) * block_bytes;
        }
    }

    // `blocks`: the blocks of all rows for these 128 values of K.
    template <class Simt> WAVESMITH_DEVICE void load(const Simt & simt, const uint8_t * blocks) {
        WAVESMITH_UNROLL
        for (int i = 0; i < piece_count; ++i) {
            piece_[i] = simt.template load<Bytes16>(blocks + piece_offset_[i]);
        }
        WAVESMITH_UNROLL
        for (int i = 0; i < header_count; ++i) {
            header_[i].d    = simt.template load<Bytes16>(blocks + header_offset_[i]);
            header_[i].sums = Quant::minimums > 0 ? simt.template load<Bytes16>(blocks + header_offset_[i] + 16) : Bytes16{};
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
            const float   d             = bits_to_float(header.d.word[step]);
            const int32_t first         = int16_t(header.sums.word[step] & 0xFFFF);
            const int32_t second        = int16_t(header.sums.word[step] >> 16);
            const float   factor[3]     = { d, d * float(Quant::minimums == 1 ? first + second : first), d * float(second) };
            const uint32_t address      = stage + Lds::factor(step, column);
            uint32_t       words[Lds::factors_of * Lds::copies];
            WAVESMITH_UNROLL
            for (int i = 0; i < Lds::factors_of * Lds::copies; ++i) {
                words[i] = float_to_bits(factor[i / Lds::copies]);
            }
            store_words(simt, address, words);
        }
    }

    // In the widest writes that the number of words allows, so that neighbouring columns stay in different banks.
    template <int count, class Simt> WAVESMITH_DEVICE static void store_words(const Simt & simt, uint32_t address, const uint32_t (&word)[count]) {
        WAVESMITH_UNROLL
        for (int i = 0; i < count;) {
            if (count % 4 == 0) {
                simt.lds_store(address + 4 * i, Bytes16{ { word[i], word[i + 1], word[i + 2], word[i + 3] } });
                i += 4;
            } else if (count % 2 == 0) {
                simt.lds_store(address + 4 * i, Bytes8{ { word[i], word[i + 1] } });
                i += 2;
            } else {
                simt.lds_store(address + 4 * i, word[i]);
                i += 1;
            }
        }
    }
};

}  // namespace wavesmith
