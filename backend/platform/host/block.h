// One block on the host platform: its threads are fibers that run one at a time and change over only at barriers and at
// wave operations.
//
// Default order: a thread runs until it has to wait, then the next lane of its wave goes on, then the next wave. Between
// two wave operations the lanes of a wave so advance in lock-step groups, and a wave operation costs one switch per lane.
// With a random order the next thread is drawn from all that can go on, at every barrier and wave operation.
//
// A wave operation is computed once for all lanes: each lane deposits a pointer to its operand and waits; the last to
// arrive computes for the whole wave. Lanes that can never meet (one at an operation, another at a barrier, at another
// operation or gone) are an error that names kernel, block and thread; nothing ever hangs.
//
// A Block belongs to one system thread and is used for one block after another.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <string>
#include <vector>

#include "fiber.h"
#include "fiber_stacks.h"
#include "race_checker.h"
#include "random.h"

namespace wavesmith::host {

// A part of global memory that a launch may access.
struct Region {
    const void * begin;
    size_t       bytes;
    bool         writable;
    const char * name;
};

// Thrown inside a kernel, caught at the entry of the thread's fiber; ends the block. An empty message means: no fault.
struct Fault {
    std::string message;
};

class Block;

// A wave operation. Lanes meet only if they are at the same WaveOperation object.
struct WaveOperation {
    const char * (*name)();  // for messages
    // operands[lane] is what that lane deposited. Threads of the wave are wave * wave_size + lane.
    void (*compute)(Block & block, uint32_t wave, void * const * operands);
};

// What all blocks of a launch have in common.
struct BlockSettings {
    const char *   kernel;
    uint32_t       grid[3];
    uint32_t       threads;
    uint32_t       wave_size;
    uint32_t       lds_bytes;
    const Region * regions;
    int            region_count;
    bool           poison_lds;  // fill LDS with 0xff before the block starts
    bool           race_check;
    bool           random_order;
    uint64_t       seed;
    void (*body)(Block & block, uint32_t thread, const void * arguments);  // runs the kernel for one thread
    const void * arguments;
};

class Block {
public:
    static constexpr uint32_t max_threads   = 1024;
    static constexpr uint32_t max_wave_size = 64;

    Block()                          = default;
    Block(const Block &)             = delete;
    Block & operator=(const Block &) = delete;

    // Takes the stacks, LDS and tables that blocks of these settings need. Throws std::bad_alloc.
    // `settings` must outlive the runs.
    void configure(const BlockSettings & settings);

    // Runs block `number` = x + grid_x * (y + grid_y * z). Returns "" or the first fault's message.
    std::string run(uint64_t number);

    const BlockSettings & settings() const { return *settings_; }
    uint32_t              index(int dimension) const { return index_[dimension]; }
    unsigned char *       lds() const { return lds_; }
    RaceChecker *         race_checker() { return settings_->race_check ? &race_checker_ : nullptr; }

    // For the thread that is running.
    void barrier(uint32_t thread);
    void wave_operation(uint32_t thread, const WaveOperation & operation, void * operand);

    // Ends the block with the message "kernel K, block (x, y, z), thread T: what".
    [[noreturn]] void fail(uint32_t thread, const std::string & what) const;

private:
    struct Thread {
        void *   fiber;  // while suspended
        Block *  block;
        uint32_t index;
    };

    // One bit per lane in each mask.
    struct Wave {
        uint64_t              all;
        uint64_t              runnable;
        uint64_t              at_operation;
        uint64_t              at_barrier;
        uint64_t              returned;
        const WaveOperation * operation;  // that the lanes of at_operation wait at
        void *                operands[max_wave_size];
    };

    static void enter(void * thread);

    void        start_threads();
    std::string run_threads();
    void        leave(uint32_t thread);
    void        wait(uint32_t thread);
    void        yield(uint32_t thread);
    void        switch_to(uint32_t from, uint32_t to);
    bool        next_runnable(uint32_t after, uint32_t & thread);
    bool        random_runnable(uint32_t & thread);
    void        complete_barrier();
    std::string describe(uint32_t thread, const std::string & what) const;
    std::string describe_deadlock(uint32_t & thread) const;
    [[noreturn]] void fail_deadlock() const;
    [[noreturn]] void fail_other_operation(uint32_t thread, const WaveOperation & operation) const;

    const BlockSettings *      settings_           = nullptr;
    uint32_t                   index_[3]           = {};
    uint32_t                   wave_shift_         = 0;
    uint32_t                   waves_in_use_       = 0;
    uint32_t                   arrived_at_barrier_ = 0;
    uint32_t                   returned_           = 0;
    unsigned char *            lds_                = nullptr;  // in lds_storage_, aligned to a cache line
    void *                     main_fiber_         = nullptr;  // the system thread's own stack while threads run
    std::vector<Wave>          waves_;
    std::vector<Thread>        threads_;
    std::string                fault_;
    FiberStacks                stacks_;
    std::vector<unsigned char> lds_storage_;
    RaceChecker                race_checker_;
    Random                     random_;
};

// The lane after `lane`, going round, among `lanes` (not empty).
inline uint32_t next_lane(uint64_t lanes, uint32_t lane) {
    const uint64_t above = lanes & (~uint64_t(1) << lane);
    return uint32_t(__builtin_ctzll(above != 0 ? above : lanes));
}

inline void Block::switch_to(uint32_t from, uint32_t to) {
    wavesmith_fiber_switch(&threads_[from].fiber, threads_[to].fiber);
}

inline void Block::wave_operation(uint32_t thread, const WaveOperation & operation, void * operand) {
    const uint32_t lane = thread & (settings_->wave_size - 1);
    const uint64_t bit  = uint64_t(1) << lane;
    Wave &         wave = waves_[thread >> wave_shift_];
    if (wave.at_operation == 0) {
        wave.operation = &operation;
    } else if (wave.operation != &operation) {
        fail_other_operation(thread, operation);
    }
    wave.operands[lane] = operand;
    wave.at_operation |= bit;
    if (wave.at_operation == wave.all) {
        wave.at_operation = 0;
        wave.runnable     = wave.all;
        operation.compute(*this, thread >> wave_shift_, wave.operands);
        yield(thread);
        return;
    }
    wave.runnable &= ~bit;
    if (wave.runnable != 0 && !settings_->random_order) {
        switch_to(thread, (thread - lane) + next_lane(wave.runnable, lane));
        return;
    }
    wait(thread);
}

inline void Block::barrier(uint32_t thread) {
    const uint32_t lane = thread & (settings_->wave_size - 1);
    const uint64_t bit  = uint64_t(1) << lane;
    Wave &         wave = waves_[thread >> wave_shift_];
    if (++arrived_at_barrier_ == settings_->threads) {
        complete_barrier();
        yield(thread);
        return;
    }
    wave.at_barrier |= bit;
    wave.runnable &= ~bit;
    if (wave.runnable != 0 && !settings_->random_order) {
        switch_to(thread, (thread - lane) + next_lane(wave.runnable, lane));
        return;
    }
    wait(thread);
}

// After an operation for which nobody waits any longer: in the default order the thread just goes on.
inline void Block::yield(uint32_t thread) {
    if (settings_->random_order) {
        uint32_t next = thread;
        random_runnable(next);
        if (next != thread) {
            switch_to(thread, next);
        }
    }
}

}  // namespace wavesmith::host
