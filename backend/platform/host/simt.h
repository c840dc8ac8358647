// The SIMT platform (platform/simt.h) on the CPU.
#pragma once

#include <string.h>

#include <string>
#include <type_traits>

#include "../simt.h"
#include "access_check.h"
#include "block.h"

namespace wavesmith::host {

// `checked`: every access is checked (access_check.h) and LDS starts poisoned. Without it nothing is checked but that the
// lanes of a wave and the threads of a block meet.
template <class Architecture, bool checked> class HostSimt {
public:
    using Arch = Architecture;

    static constexpr bool     is_host    = true;
    static constexpr bool     is_checked = checked;
    static constexpr uint32_t wave_size  = Arch::wave_size;
    static_assert(wave_size == 32 || wave_size == 64, "wave sizes of AMD GPUs");

    HostSimt(Block & block, uint32_t thread) :
        block_(&block),
        lds_(block.lds()),
        thread_(thread),
        thread_count_(block.settings().threads),
        block_index_{ block.index(0), block.index(1), block.index(2) },
        grid_{ block.settings().grid[0], block.settings().grid[1], block.settings().grid[2] } {}

    uint32_t thread() const { return thread_; }
    uint32_t thread_count() const { return thread_count_; }
    uint32_t lane() const { return thread_ % wave_size; }
    uint32_t wave() const { return thread_ / wave_size; }
    uint32_t block_x() const { return block_index_[0]; }
    uint32_t block_y() const { return block_index_[1]; }
    uint32_t block_z() const { return block_index_[2]; }
    uint32_t grid_x() const { return grid_[0]; }
    uint32_t grid_y() const { return grid_[1]; }
    uint32_t grid_z() const { return grid_[2]; }

    void barrier() const { block_->barrier(thread_); }

    template <class T> T lds_load(uint32_t byte_offset) const {
        check_type<T>();
        if constexpr (checked) {
            check_lds_access(*block_, thread_, false, byte_offset, sizeof(T), alignof(T));
        }
        T value;
        memcpy(&value, lds_ + byte_offset, sizeof(T));
        return value;
    }

    template <class T> void lds_store(uint32_t byte_offset, T value) const {
        check_type<T>();
        if constexpr (checked) {
            check_lds_access(*block_, thread_, true, byte_offset, sizeof(T), alignof(T));
        }
        memcpy(lds_ + byte_offset, &value, sizeof(T));
    }

    template <class T, int align = alignof(T)> T load(const void * address) const {
        check_type<T>();
        if constexpr (checked) {
            check_global_access(*block_, thread_, false, address, sizeof(T), align);
        }
        T value;
        memcpy(&value, address, sizeof(T));
        return value;
    }

    template <class T, int align = alignof(T)> void store(void * address, T value) const {
        check_type<T>();
        if constexpr (checked) {
            check_global_access(*block_, thread_, true, address, sizeof(T), align);
        }
        memcpy(address, &value, sizeof(T));
    }

    template <class T> T shuffle_xor(T value, uint32_t mask) const { return shuffle(value, lane() ^ mask); }

    // Lanes beyond the wave wrap round as on the hardware; in the checked build they are an error.
    template <class T> T shuffle(T value, uint32_t source_lane) const {
        static_assert(sizeof(T) == 4 && std::is_trivially_copyable<T>::value, "shuffles move 4 bytes");
        if constexpr (checked) {
            check_shuffle_lane(*block_, thread_, source_lane, wave_size);
        }
        typename Shuffle::Operand operand;
        memcpy(&operand.value, &value, 4);
        operand.source_lane = source_lane % wave_size;
        wave_operation<Shuffle>(operand);
        memcpy(&value, &operand.result, 4);
        return value;
    }

    // Host only, and the way to arch/'s models of wave-wide instructions: waits until all lanes of the wave are here; the
    // last to arrive computes for all. `operand` is this lane's share and holds its result afterwards. Model has
    //
    //     static const char * name();                                 // for messages
    //     static void compute(void * const * operands);               // operands[lane]
    //     static int  faulty_lane(void * const * operands);           // in the checked build: a lane whose operand is not
    //     static const char * fault();                                //     allowed, and why; -1 if all are
    template <class Model, class Operand> void wave_operation(Operand & operand) const {
        block_->wave_operation(thread_, operation_of<Model>, &operand);
    }

private:
    template <class T> static void check_type() {
        static_assert(std::is_trivially_copyable<T>::value && sizeof(T) <= 16, "accesses move 1 to 16 bytes");
    }

    template <class Model> static void compute(Block & block, uint32_t wave, void * const * operands) {
        if constexpr (checked) {
            const int lane = Model::faulty_lane(operands);
            if (lane >= 0) {
                block.fail(wave * wave_size + uint32_t(lane), std::string(Model::name()) + ": " + Model::fault());
            }
        }
        Model::compute(operands);
    }

    template <class Model> static constexpr WaveOperation operation_of = { Model::name, compute<Model> };

    struct Shuffle {
        struct Operand {
            uint32_t value;
            uint32_t source_lane;
            uint32_t result;
        };

        static const char * name() { return "shuffle"; }
        static int          faulty_lane(void * const *) { return -1; }
        static const char * fault() { return ""; }
        static void         compute(void * const * operands) {
            for (uint32_t lane = 0; lane < wave_size; lane++) {
                Operand & own = *static_cast<Operand *>(operands[lane]);
                own.result    = static_cast<const Operand *>(operands[own.source_lane])->value;
            }
        }
    };

    Block *         block_;
    unsigned char * lds_;
    uint32_t        thread_;
    uint32_t        thread_count_;
    uint32_t        block_index_[3];
    uint32_t        grid_[3];
};

}  // namespace wavesmith::host
