#include "block.h"

#include <string.h>

#include <exception>
#include <utility>

namespace wavesmith::host {

void Block::configure(const BlockSettings & settings) {
    stacks_.reserve(settings.threads);
    waves_.resize(settings.threads / settings.wave_size);
    threads_.resize(settings.threads);

    constexpr size_t line = 64;
    if (lds_storage_.size() < settings.lds_bytes + line) {
        lds_storage_.assign(settings.lds_bytes + line, 0);
    }
    lds_ = reinterpret_cast<unsigned char *>((reinterpret_cast<uintptr_t>(lds_storage_.data()) + line - 1) & ~uintptr_t(line - 1));

    if (settings.race_check) {
        race_checker_.reserve(settings.lds_bytes);
    }
    settings_     = &settings;
    wave_shift_   = uint32_t(__builtin_ctz(settings.wave_size));
    waves_in_use_ = settings.threads / settings.wave_size;
}

std::string Block::run(uint64_t number) {
    const uint32_t * grid = settings_->grid;
    index_[0]             = uint32_t(number % grid[0]);
    index_[1]             = uint32_t(number / grid[0] % grid[1]);
    index_[2]             = uint32_t(number / grid[0] / grid[1]);
    if (settings_->poison_lds) {
        memset(lds_, 0xff, settings_->lds_bytes);
    }
    if (settings_->race_check) {
        race_checker_.next_interval();
    }
    random_ = Random(settings_->seed, number);
    start_threads();
    return run_threads();
}

void Block::start_threads() {
    arrived_at_barrier_ = 0;
    returned_           = 0;
    fault_.clear();
    for (uint32_t w = 0; w < waves_in_use_; w++) {
        Wave & wave       = waves_[w];
        wave.all          = settings_->wave_size == 64 ? ~uint64_t(0) : (uint64_t(1) << settings_->wave_size) - 1;
        wave.runnable     = wave.all;
        wave.at_operation = 0;
        wave.at_barrier   = 0;
        wave.returned     = 0;
        wave.operation    = nullptr;
    }
    for (uint32_t t = 0; t < settings_->threads; t++) {
        Thread & thread = threads_[t];
        thread.block    = this;
        thread.index    = t;
        thread.fiber    = prepare_fiber(stacks_.begin(t), stacks_.bytes(t), enter, &thread);
    }
}

std::string Block::run_threads() {
    uint32_t first = 0;
    if (settings_->random_order) {
        random_runnable(first);
    }
    wavesmith_fiber_switch(&main_fiber_, threads_[first].fiber);
    return std::move(fault_);
}

void Block::enter(void * argument) {
    const Thread & thread = *static_cast<const Thread *>(argument);
    Block &        block  = *thread.block;
    try {
        block.settings_->body(block, thread.index, block.settings_->arguments);
    } catch (const Fault & fault) {
        block.fault_ = fault.message;
    } catch (const std::exception & error) {
        block.fault_ = block.describe(thread.index, error.what());
    } catch (...) {
        block.fault_ = block.describe(thread.index, "unknown exception");
    }
    block.leave(thread.index);
}

// The end of a thread: goes on with another, or ends the block. Never comes back.
void Block::leave(uint32_t thread) {
    Wave &         wave = waves_[thread >> wave_shift_];
    const uint64_t bit  = uint64_t(1) << (thread & (settings_->wave_size - 1));
    wave.runnable &= ~bit;
    wave.returned |= bit;
    returned_++;

    uint32_t   next  = thread;
    const bool found = fault_.empty() && returned_ < settings_->threads && next_runnable(thread, next);
    if (fault_.empty() && returned_ < settings_->threads && !found) {
        uint32_t culprit = 0;
        fault_           = describe_deadlock(culprit);
        fault_           = describe(culprit, fault_);
    }
    wavesmith_fiber_switch(&threads_[thread].fiber, found ? threads_[next].fiber : main_fiber_);
}

// The running thread has been marked as waiting: goes on with another.
void Block::wait(uint32_t thread) {
    uint32_t next = thread;
    if (!next_runnable(thread, next)) {
        fail_deadlock();
    }
    switch_to(thread, next);
}

bool Block::next_runnable(uint32_t after, uint32_t & thread) {
    if (settings_->random_order) {
        return random_runnable(thread);
    }
    const uint32_t own = after >> wave_shift_;
    if (waves_[own].runnable != 0) {
        thread = (own << wave_shift_) + next_lane(waves_[own].runnable, after & (settings_->wave_size - 1));
        return true;
    }
    for (uint32_t i = 1; i < waves_in_use_; i++) {
        const uint32_t w = own + i < waves_in_use_ ? own + i : own + i - waves_in_use_;
        if (waves_[w].runnable != 0) {
            thread = (w << wave_shift_) + uint32_t(__builtin_ctzll(waves_[w].runnable));
            return true;
        }
    }
    return false;
}

bool Block::random_runnable(uint32_t & thread) {
    uint32_t count = 0;
    for (uint32_t w = 0; w < waves_in_use_; w++) {
        count += uint32_t(__builtin_popcountll(waves_[w].runnable));
    }
    if (count == 0) {
        return false;
    }
    uint32_t skip = uint32_t(random_.below(count));
    for (uint32_t w = 0;; w++) {
        uint64_t       lanes = waves_[w].runnable;
        const uint32_t here  = uint32_t(__builtin_popcountll(lanes));
        if (skip >= here) {
            skip -= here;
            continue;
        }
        for (; skip > 0; skip--) {
            lanes &= lanes - 1;
        }
        thread = (w << wave_shift_) + uint32_t(__builtin_ctzll(lanes));
        return true;
    }
}

void Block::complete_barrier() {
    arrived_at_barrier_ = 0;
    for (uint32_t w = 0; w < waves_in_use_; w++) {
        waves_[w].at_barrier = 0;
        waves_[w].runnable   = waves_[w].all;
    }
    if (settings_->race_check) {
        race_checker_.next_interval();
    }
}

std::string Block::describe(uint32_t thread, const std::string & what) const {
    return std::string("kernel ") + settings_->kernel + ", block (" + std::to_string(index_[0]) + ", " + std::to_string(index_[1]) + ", " +
           std::to_string(index_[2]) + "), thread " + std::to_string(thread) + ": " + what;
}

// No thread can go on. Finds one that waits in vain, and the other that it waits for.
std::string Block::describe_deadlock(uint32_t & thread) const {
    for (uint32_t w = 0; w < waves_in_use_; w++) {
        const Wave & wave = waves_[w];
        if (wave.at_operation != 0) {
            const uint64_t missing = wave.all & ~wave.at_operation;
            const uint32_t lane    = uint32_t(__builtin_ctzll(missing));
            const uint32_t other   = (w << wave_shift_) + lane;
            thread                 = (w << wave_shift_) + uint32_t(__builtin_ctzll(wave.at_operation));
            return std::string("waits at the wave operation ") + wave.operation->name() + " for thread " + std::to_string(other) + " of its wave, which " +
                   ((wave.returned >> lane & 1) != 0 ? "has returned" : "waits at a barrier");
        }
    }
    uint32_t waiting = 0;
    uint32_t gone    = 0;
    for (uint32_t w = waves_in_use_; w-- > 0;) {
        if (waves_[w].at_barrier != 0) {
            waiting = (w << wave_shift_) + uint32_t(__builtin_ctzll(waves_[w].at_barrier));
        }
        if (waves_[w].returned != 0) {
            gone = (w << wave_shift_) + uint32_t(__builtin_ctzll(waves_[w].returned));
        }
    }
    thread = waiting;
    return "waits at a barrier for thread " + std::to_string(gone) + ", which has returned";
}

void Block::fail(uint32_t thread, const std::string & what) const {
    throw Fault{ describe(thread, what) };
}

void Block::fail_deadlock() const {
    uint32_t          thread = 0;
    const std::string what   = describe_deadlock(thread);
    fail(thread, what);
}

void Block::fail_other_operation(uint32_t thread, const WaveOperation & operation) const {
    const Wave &   wave  = waves_[thread >> wave_shift_];
    const uint32_t other = (thread >> wave_shift_ << wave_shift_) + uint32_t(__builtin_ctzll(wave.at_operation));
    fail(thread, std::string("is at the wave operation ") + operation.name() + " while thread " + std::to_string(other) +
                     " of its wave waits at the wave operation " + wave.operation->name());
}

}  // namespace wavesmith::host
