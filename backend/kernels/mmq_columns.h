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
            constexpr int words_of = Quant::step_values / 32;  // of the scales and of the pairs of sums
            const float   d = bits_to_float(header.d.word[step * words_of]);
            float         factor[Lds::factors_of];
            factor[Quant::minimums] = d;
            if constexpr (Quant::minimums > 0) {
                WAVESMITH_UNROLL
                for (int i = 0; i < Quant::minimums; ++i) {
                    factor[i] = d * float(activation_sum(header, step * words_of, i));
                }
            }
            const uint32_t address      = stage + Lds::factor(step, column);
            uint32_t       words[Lds::factor_words];
            WAVESMITH_UNROLL
            for (int i = 0; i < Lds::factor_words; ++i) {
                const int kind = i / Lds::copies;
                words[i]       = float_to_bits(factor[kind < Lds::factors_of ? kind : Lds::factors_of - 1]);
            }
            store_words(simt, address, words);
        }
    }

    // Sum of the quantised activations that minimum `i` of a step is for; `word`: the step's first pair of sums of 16.
    WAVESMITH_DEVICE static int32_t activation_sum(const Header & header, int word, int i) {
        constexpr int sums  = Quant::step_values / 16 / (Quant::minimums > 0 ? Quant::minimums : 1);  // of 16 values each: 1 or 2
        const uint32_t pair = header.sums.word[word + i * sums / 2];
        const int32_t  low  = int16_t(pair & 0xFFFF);
        const int32_t  high = int16_t(pair >> 16);
        return sums == 2 ? low + high : i % 2 ? high : low;
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
