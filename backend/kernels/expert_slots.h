// expert_slots: groups the (token, place) slots of a MUL_MAT_ID by expert, without the host.
//
// One block per expert. Slots keep their order within an expert, so the result is the same in every run. Expert numbers
// outside 0 … experts - 1 belong to no group.
#pragma once

#include "../platform/simt.h"

namespace wavesmith {

struct ExpertSlotsArguments {
    const uint8_t * ids;          // i32 [tokens][used]: the expert of each slot
    int32_t *       slots;        // [tokens * used]: token * used + place
    int32_t *       slot_bounds;  // [experts + 1]
    int32_t         tokens;       // rows of ids
    int32_t         used;         // experts per token
    int32_t         experts;      // experts of the layer
    int64_t         nb0;          // bytes between the places of a token in ids
    int64_t         nb1;          // bytes between the tokens of ids
};

template <class Arch_> struct ExpertSlots {
    using Arch      = Arch_;
    using Arguments = ExpertSlotsArguments;

    static constexpr uint32_t threads   = 128;
    static constexpr uint32_t lds_bytes = threads * 8;  // per thread: slots of lower experts, slots of this expert

    // Grid: (experts, 1, 1). Each thread owns a run of neighbouring slots.
    template <class Simt> WAVESMITH_DEVICE static void run(const Simt & simt, const Arguments & arguments) {
        const int32_t expert = int32_t(simt.block_x());
        const int32_t total  = arguments.tokens * arguments.used;
        const int32_t share  = (total + int32_t(threads) - 1) / int32_t(threads);
        const int32_t first  = minimum(total, int32_t(simt.thread()) * share);
        const int32_t last   = minimum(total, first + share);

        int32_t lower = 0, own = 0;
        for (int32_t slot = first; slot < last; ++slot) {
            const int32_t id = expert_of(simt, arguments, slot);
            lower += id >= 0 && id < expert;
            own += id == expert;
        }
        simt.lds_store(8 * simt.thread(), lower);
        simt.lds_store(8 * simt.thread() + 4, own);
        simt.barrier();

        int32_t begin = 0, before = 0, all = 0;
        for (uint32_t other = 0; other < threads; ++other) {
            const int32_t count = simt.template lds_load<int32_t>(8 * other + 4);
            begin += simt.template lds_load<int32_t>(8 * other);
            before += other < simt.thread() ? count : 0;
            all += count;
        }
        int32_t place = begin + before;
        for (int32_t slot = first; slot < last; ++slot) {
            if (expert_of(simt, arguments, slot) == expert) {
                simt.template store<int32_t>(arguments.slots + place++, slot);
            }
        }
        if (simt.thread() == 0) {
            simt.template store<int32_t>(arguments.slot_bounds + expert, begin);
            if (expert == arguments.experts - 1) {
                simt.template store<int32_t>(arguments.slot_bounds + expert + 1, begin + all);
            }
        }
    }

  private:
    WAVESMITH_DEVICE static int32_t minimum(int32_t a, int32_t b) { return a < b ? a : b; }

    template <class Simt> WAVESMITH_DEVICE static int32_t expert_of(const Simt & simt, const Arguments & arguments, int32_t slot) {
        return simt.template load<int32_t>(arguments.ids + slot / arguments.used * arguments.nb1 + slot % arguments.used * arguments.nb0);
    }
};

}  // namespace wavesmith
