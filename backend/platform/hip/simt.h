// The SIMT platform (platform/simt.h) on an AMD GPU, without HIP's headers or device library: clang's builtins only.
#pragma once

#include "../simt.h"
#include "memory.h"

namespace wavesmith::hip {

#if defined(__HIP__)
// The workgroup's LDS, sized at launch.
extern __attribute__((shared, aligned(16))) unsigned char dynamic_lds[];
#endif

// Blocks are one-dimensional. A launch needs no runtime support but the dispatch packet.
// `lds_bytes` makes the workgroup's LDS part of the kernel, so that the compiler knows the occupancy; 0: sized at launch.
template <class Architecture, uint32_t lds_bytes = 0> struct DeviceSimt {
    using Arch = Architecture;

    static constexpr bool     is_host    = false;
    static constexpr bool     is_checked = false;
    static constexpr uint32_t wave_size  = Arch::wave_size;

#if defined(__HIP__)
#    if defined(__AMDGCN_WAVEFRONT_SIZE__)
    static_assert(wave_size == __AMDGCN_WAVEFRONT_SIZE__, "the target's wave size is not this family's");
#    endif

    WAVESMITH_DEVICE_ONLY uint32_t thread() const { return __builtin_amdgcn_workitem_id_x(); }
    WAVESMITH_DEVICE_ONLY uint32_t thread_count() const { return __builtin_amdgcn_workgroup_size_x(); }

    WAVESMITH_DEVICE_ONLY uint32_t lane() const {
        const uint32_t low = __builtin_amdgcn_mbcnt_lo(~0u, 0u);
        return wave_size == 32 ? low : __builtin_amdgcn_mbcnt_hi(~0u, low);
    }

    // Read from the first lane, so that the compiler knows it to be the same in all.
    WAVESMITH_DEVICE_ONLY uint32_t wave() const { return __builtin_amdgcn_readfirstlane(thread() / wave_size); }

    WAVESMITH_DEVICE_ONLY uint32_t block_x() const { return __builtin_amdgcn_workgroup_id_x(); }
    WAVESMITH_DEVICE_ONLY uint32_t block_y() const { return __builtin_amdgcn_workgroup_id_y(); }
    WAVESMITH_DEVICE_ONLY uint32_t block_z() const { return __builtin_amdgcn_workgroup_id_z(); }

    // The dispatch packet counts threads. Blocks are one thread deep in y and z.
    WAVESMITH_DEVICE_ONLY uint32_t grid_x() const { return __builtin_amdgcn_grid_size_x() / thread_count(); }
    WAVESMITH_DEVICE_ONLY uint32_t grid_y() const { return __builtin_amdgcn_grid_size_y(); }
    WAVESMITH_DEVICE_ONLY uint32_t grid_z() const { return __builtin_amdgcn_grid_size_z(); }

    WAVESMITH_DEVICE_ONLY void barrier() const {
        __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
        __builtin_amdgcn_s_barrier();
        __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
    }

    template <class T> WAVESMITH_DEVICE_ONLY T lds_load(uint32_t byte_offset) const { return load_lds<T>(lds() + byte_offset); }
    template <class T> WAVESMITH_DEVICE_ONLY void lds_store(uint32_t byte_offset, T value) const { store_lds<T>(lds() + byte_offset, value); }

    template <class T, int align = alignof(T)> WAVESMITH_DEVICE_ONLY T load(const void * address) const { return load_global<T, align>(address); }
    template <class T, int align = alignof(T)> WAVESMITH_DEVICE_ONLY void store(void * address, T value) const { store_global<T, align>(address, value); }

    template <class T> WAVESMITH_DEVICE_ONLY T shuffle_xor(T value, uint32_t mask) const { return shuffle(value, lane() ^ mask); }

    // Lanes beyond the wave wrap round.
    template <class T> WAVESMITH_DEVICE_ONLY T shuffle(T value, uint32_t source_lane) const {
        static_assert(sizeof(T) == 4, "shuffles move 4 bytes");
        return __builtin_bit_cast(T, __builtin_amdgcn_ds_bpermute(int(source_lane << 2), __builtin_bit_cast(int, value)));
    }

private:
    WAVESMITH_DEVICE_ONLY static WAVESMITH_LDS unsigned char * lds() {
        if constexpr (lds_bytes == 0) {
            return (WAVESMITH_LDS unsigned char *) dynamic_lds;
        } else {
            static __attribute__((shared, aligned(16))) unsigned char static_lds[lds_bytes];
            return (WAVESMITH_LDS unsigned char *) static_lds;
        }
    }
#endif
};

}  // namespace wavesmith::hip
