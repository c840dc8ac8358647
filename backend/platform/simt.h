// The SIMT platform that every kernel is written against.
//
// A kernel is a class template with a static member function
//
//     template <class Simt> WAVESMITH_DEVICE static void run(const Simt & simt, const Arguments & arguments);
//
// called once per thread. `Simt` is DeviceSimt<Arch> when compiled for a GPU (platform/hip, platform/cuda) and
// HostSimt<Arch, checked> on the CPU (platform/host). Every Simt has:
//
//     static constexpr bool     is_host;       // true on the CPU
//     static constexpr bool     is_checked;    // true where accesses are checked and integer sums can be recorded
//     static constexpr uint32_t wave_size;     // 32 or 64, from the Arch
//
//     uint32_t thread() const;                 // flat thread index in the block; blocks are one-dimensional
//     uint32_t thread_count() const;           // threads in the block
//     uint32_t lane() const;                   // thread() % wave_size
//     uint32_t wave() const;                   // thread() / wave_size; the same for all lanes, known to be uniform
//     uint32_t block_x() const; block_y() const; block_z() const;
//     uint32_t grid_x() const;  grid_y() const;  grid_z() const;
//
//     void barrier() const;                    // all threads of the block; orders LDS and global accesses
//
//     // LDS is one array of bytes per block, addressed by byte offset. T is trivially copyable, 1 to 16 bytes, and the
//     // offset is a multiple of alignof(T).
//     template <class T> T    lds_load(uint32_t byte_offset) const;
//     template <class T> void lds_store(uint32_t byte_offset, T value) const;
//
//     // Global memory. `align` is the alignment of the address in bytes where it is less than T's own.
//     template <class T, int align = alignof(T)> T    load(const void * address) const;
//     template <class T, int align = alignof(T)> void store(void * address, T value) const;
//
//     // Wave-wide exchange. All lanes of the wave must arrive.
//     template <class T> T shuffle_xor(T value, uint32_t mask) const;   // T is 4 bytes
//     template <class T> T shuffle(T value, uint32_t source_lane) const;
//
// Wave-wide matrix instructions belong to arch/ and take the Simt as their first argument.
#pragma once

#include <stdint.h>

#if defined(__HIP__) && defined(__HIP_DEVICE_COMPILE__)
#    define WAVESMITH_DEVICE __attribute__((device)) __attribute__((always_inline))
#    define WAVESMITH_DEVICE_COMPILE 1
#    define WAVESMITH_TABLE __attribute__((device)) constexpr
#    define WAVESMITH_UNROLL _Pragma("unroll")
#elif defined(__CUDACC__) || defined(__HIP__)
#    define WAVESMITH_DEVICE __attribute__((host)) __attribute__((device)) inline
#    define WAVESMITH_TABLE static __attribute__((device)) const
#    define WAVESMITH_UNROLL _Pragma("unroll")
#    if defined(__CUDA_ARCH__)
#        define WAVESMITH_DEVICE_COMPILE 1
#    endif
#else
#    define WAVESMITH_DEVICE inline
#    define WAVESMITH_TABLE constexpr
#    define WAVESMITH_UNROLL
#endif

// WAVESMITH_TABLE begins the definition of an array of constants that kernels read: WAVESMITH_TABLE uint32_t squares[] = { 0, 1, 4 };

namespace wavesmith {

// 8 and 16 bytes moved as one access.
struct alignas(8) Bytes8 {
    uint32_t word[2];
};
struct alignas(16) Bytes16 {
    uint32_t word[4];
};

}  // namespace wavesmith
