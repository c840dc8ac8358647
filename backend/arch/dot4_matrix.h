// The Int8Matrix (arch.h) of families without matrix instructions, made of dot4.
//
// The lanes form wave_size / 4 row groups by 4 column groups; each owns 4 rows and 4 columns:
//     row    = lane % (wave_size / 4) + (wave_size / 4) * i,    i = 0 … 3
//     column = lane / (wave_size / 4) + 4 * j,                  j = 0 … 3
// so C is wave_size x 16, 16 values of K deep, and lanes exchange nothing. Result register r is i = r / 4, j = r % 4.
#pragma once

#include "../platform/simt.h"

namespace wavesmith::arch {

template <class Arch> struct Dot4Matrix {
    static constexpr int row_groups = int(Arch::wave_size) / 4;
    static constexpr int m          = 4 * row_groups;
    static constexpr int n          = 16;
    static constexpr int k          = 16;
    static constexpr int registers  = 16;

    struct A {
        Bytes16 row[4];
    };
    struct B {
        Bytes16 row[4];
    };
    struct C {
        int32_t value[registers];
    };

    // Rows of 16 bytes at offsets that are multiples of 16.
    template <class Simt> WAVESMITH_DEVICE static A load_a(const Simt & simt, uint32_t lds_offset, uint32_t row_stride) {
        A a;
        WAVESMITH_UNROLL
        for (int i = 0; i < 4; i++) {
            a.row[i] = simt.template lds_load<Bytes16>(lds_offset + uint32_t(row(simt.lane(), 4 * i)) * row_stride);
        }
        return a;
    }

    template <class Simt> WAVESMITH_DEVICE static B load_b(const Simt & simt, uint32_t lds_offset, uint32_t row_stride) {
        B b;
        WAVESMITH_UNROLL
        for (int j = 0; j < 4; j++) {
            b.row[j] = simt.template lds_load<Bytes16>(lds_offset + uint32_t(column(simt.lane(), j)) * row_stride);
        }
        return b;
    }

    template <class Simt> WAVESMITH_DEVICE static void multiply(const Simt & simt, const A & a, const B & b, C & c) {
        static_assert(Simt::wave_size == Arch::wave_size, "the family's wave size");
        WAVESMITH_UNROLL
        for (int i = 0; i < 4; i++) {
            WAVESMITH_UNROLL
            for (int j = 0; j < 4; j++) {
                WAVESMITH_UNROLL
                for (int word = 0; word < 4; word++) {
                    c.value[4 * i + j] = Arch::dot4(simt, int32_t(a.row[i].word[word]), int32_t(b.row[j].word[word]), c.value[4 * i + j]);
                }
            }
        }
    }

    WAVESMITH_DEVICE static constexpr int row(uint32_t lane, int r) { return int(lane) % row_groups + row_groups * (r / 4); }
    WAVESMITH_DEVICE static constexpr int column(uint32_t lane, int r) { return int(lane) / row_groups + 4 * (r % 4); }
};

}  // namespace wavesmith::arch
