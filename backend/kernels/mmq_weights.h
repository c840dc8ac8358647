// The weights of an mmq tile: loaded from memory into registers, then unpacked into LDS.
#pragma once

#include "../quants/support/quant.h"
#include "mmq_tile.h"

namespace wavesmith {

template <class Quant, class Tile, class Matrix, uint32_t threads> class MmqWeights {
    using Lds = MmqLds<Quant, Tile, Matrix>;

    static constexpr int units       = Lds::steps / Quant::scale_steps;  // of scales, per row
    static constexpr int chunk_count = (Tile::tile_m * Quant::chunks + int(threads) - 1) / int(threads);
    static constexpr int scale_count = (Tile::tile_m * units + int(threads) - 1) / int(threads);
    static constexpr int run         = Matrix::run(Quant::parts) < 16 ? Matrix::run(Quant::parts) : 16;

    uint32_t               chunk_row_[chunk_count];  // bytes from the tile's first weight row
    uint32_t               scale_row_[scale_count];
    typename Quant::Chunk  chunk_[chunk_count];
    typename Quant::Scales scales_[scale_count];

    // Item `i` of this thread. Neighbouring threads take neighbouring chunks of a row.
    template <class Simt> WAVESMITH_DEVICE static int item(const Simt & simt, int i) { return int(simt.thread()) + i * int(threads); }

    // A row past the last repeats the last one: its results are never stored.
    WAVESMITH_DEVICE static uint32_t offset_of(const MmqArguments & arguments, int32_t row0, int row) {
        const int last = arguments.m - 1 - row0;
        return uint32_t(row < last ? row : last) * uint32_t(arguments.nb01);
    }

    // Whether values from `k` on exist. Blocks of 128 and 256 make whole tiles.
    WAVESMITH_DEVICE static bool exists(const MmqArguments & arguments, int32_t k) { return Quant::block_values % Tile::tile_k == 0 || k < arguments.k; }

  public:
    template <class Simt> WAVESMITH_DEVICE MmqWeights(const Simt & simt, const MmqArguments & arguments, int32_t row0) {
        WAVESMITH_UNROLL
        for (int i = 0; i < chunk_count; ++i) {
            chunk_row_[i] = offset_of(arguments, row0, item(simt, i) / Quant::chunks);
        }
        WAVESMITH_UNROLL
        for (int i = 0; i < scale_count; ++i) {
            scale_row_[i] = offset_of(arguments, row0, item(simt, i) % Tile::tile_m);
        }
    }

    // Values k … k + 127 of the tile's rows, which begin at `weights`. What lies past K has zero activations to meet and gets
    // the bytes of the tile's first values with a zero scale.
    template <class Simt> WAVESMITH_DEVICE void load(const Simt & simt, const MmqArguments & arguments, const uint8_t * weights, int32_t k) {
        WAVESMITH_UNROLL
        for (int i = 0; i < chunk_count; ++i) {
            const int chunk = item(simt, i) % Quant::chunks;
            chunk_[i]       = Quant::load(simt, weights + chunk_row_[i], k, exists(arguments, k + Quant::offset(chunk, 0)) ? chunk : 0);
        }
        WAVESMITH_UNROLL
        for (int i = 0; i < scale_count; ++i) {
            const int  unit  = item(simt, i) / Tile::tile_m % units;
            const bool valid = exists(arguments, k + Quant::step_values * Quant::scale_steps * unit);
            scales_[i]       = Quant::load_scales(simt, weights + scale_row_[i], k, valid ? unit : 0);
            if (!valid) {
                scales_[i] = {};
            }
        }
    }

    template <class Simt> WAVESMITH_DEVICE void store(const Simt & simt, uint32_t stage, int32_t k) const {
        WAVESMITH_UNROLL
        for (int i = 0; i < chunk_count; ++i) {
            const int row   = item(simt, i) / Quant::chunks;
            const int chunk = item(simt, i) % Quant::chunks;
            if (Tile::tile_m * Quant::chunks % threads == 0 || row < Tile::tile_m) {
                Bytes16 piece[Quant::pieces];
                Quant::unpack(chunk_[i], chunk, piece);
                WAVESMITH_UNROLL
                for (int p = 0; p < Quant::pieces; ++p) {
                    store_piece(simt, stage + Lds::weights + row * Lds::row_stride, Quant::offset(chunk, p), piece[p]);
                }
            }
        }
        WAVESMITH_UNROLL
        for (int i = 0; i < scale_count; ++i) {
            const int row  = item(simt, i) % Tile::tile_m;
            const int unit = item(simt, i) / Tile::tile_m;
            if (Tile::tile_m * units % threads == 0 || unit < units) {
                store_scales(simt, stage, row, unit, k, scales_[i]);
            }
        }
    }

    // 16 values from `k` of the tile on, at the places where the matrix step wants them.
    template <class Simt> WAVESMITH_DEVICE static void store_piece(const Simt & simt, uint32_t row, int k, Bytes16 piece) {
        const uint32_t step = row + k / 32 * 32;
        if constexpr (run == 16) {
            simt.lds_store(step + Matrix::place(Quant::parts, k % 32), piece);
        } else {
            static_assert(run == 8, "runs of 8 or 16 values");
            simt.lds_store(step + Matrix::place(Quant::parts, k % 32), Bytes8{ { piece.word[0], piece.word[1] } });
            simt.lds_store(step + Matrix::place(Quant::parts, k % 32 + 8), Bytes8{ { piece.word[2], piece.word[3] } });
        }
    }

  private:
    template <class Simt>
    WAVESMITH_DEVICE static void store_scales(const Simt & simt, uint32_t stage, int row, int unit, int32_t k, const typename Quant::Scales & scales) {
        const int position = row / Matrix::m * Matrix::m + Matrix::row_position(row % Matrix::m);
        WAVESMITH_UNROLL
        for (int step = 0; step < Quant::scale_steps; ++step) {
            const quants::StepScale scale = Quant::step_scale(scales, k, unit, step);
            const int               s     = unit * Quant::scale_steps + step;
            WAVESMITH_UNROLL
            for (int part = 0; part < Quant::parts; ++part) {
                simt.lds_store(stage + Lds::scale(s, part, position), scale.scale[part]);
            }
            WAVESMITH_UNROLL
            for (int i = 0; i < Quant::minimums; ++i) {
                simt.lds_store(stage + Lds::scale(s, Quant::parts + i, position), -scale.minimum[i]);
            }
        }
    }
};

}  // namespace wavesmith
