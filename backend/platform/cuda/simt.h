// The SIMT platform (platform/simt.h) on an NVIDIA GPU. It exists to run kernels on a GPU when no AMD card is at hand:
// families of wave size 32 whose Int8Step is made of dot4, that is rdna2.
#pragma once

#include <string.h>

#include "../simt.h"

namespace wavesmith::cuda {

#if defined(__CUDACC__)
// The block's shared memory, sized at launch.
extern __shared__ __align__(16) unsigned char dynamic_lds[];
#endif

template <class Architecture> struct DeviceSimt {
    using Arch = Architecture;

    static constexpr bool     is_host    = false;
    static constexpr bool     is_checked = false;
    static constexpr uint32_t wave_size  = Arch::wave_size;
    static_assert(wave_size == 32, "a warp has 32 threads");

#if defined(__CUDACC__)
    __device__ uint32_t thread() const { return threadIdx.x; }
    __device__ uint32_t thread_count() const { return blockDim.x; }
    __device__ uint32_t lane() const { return threadIdx.x % wave_size; }
    // Taken from the first lane, so that the compiler knows it to be the same in all.
    __device__ uint32_t wave() const { return __shfl_sync(all_lanes, threadIdx.x / wave_size, 0); }
    __device__ uint32_t block_x() const { return blockIdx.x; }
    __device__ uint32_t block_y() const { return blockIdx.y; }
    __device__ uint32_t block_z() const { return blockIdx.z; }
    __device__ uint32_t grid_x() const { return gridDim.x; }
    __device__ uint32_t grid_y() const { return gridDim.y; }
    __device__ uint32_t grid_z() const { return gridDim.z; }

    __device__ void barrier() const { __syncthreads(); }

    template <class T> __device__ T lds_load(uint32_t byte_offset) const { return copy_from<T, alignof(T)>(dynamic_lds + byte_offset); }
    template <class T> __device__ void lds_store(uint32_t byte_offset, T value) const { copy_to<T, alignof(T)>(dynamic_lds + byte_offset, value); }

    template <class T, int align = alignof(T)> __device__ T load(const void * address) const { return copy_from<T, align>(address); }
    template <class T, int align = alignof(T)> __device__ void store(void * address, T value) const { copy_to<T, align>(address, value); }

    template <class T> __device__ T shuffle_xor(T value, uint32_t mask) const { return shuffle(value, lane() ^ mask); }

    template <class T> __device__ T shuffle(T value, uint32_t source_lane) const {
        static_assert(sizeof(T) == 4, "shuffles move 4 bytes");
        uint32_t bits;
        memcpy(&bits, &value, 4);
        bits = __shfl_sync(all_lanes, bits, int(source_lane % wave_size));
        memcpy(&value, &bits, 4);
        return value;
    }

private:
    static constexpr uint32_t all_lanes = 0xffffffffu;

    // NVIDIA GPUs have no unaligned accesses: the copy is split into parts that `align` allows.
    template <class T, int align> static __device__ T copy_from(const void * address) {
        T value;
        memcpy(&value, __builtin_assume_aligned(address, align), sizeof(T));
        return value;
    }

    template <class T, int align> static __device__ void copy_to(void * address, const T & value) {
        memcpy(__builtin_assume_aligned(address, align), &value, sizeof(T));
    }
#endif
};

}  // namespace wavesmith::cuda
