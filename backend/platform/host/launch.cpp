#include "launch.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <new>
#include <vector>

#include "options.h"
#include "random.h"
#include "thread_pool.h"

namespace wavesmith::host {

namespace {

std::string check(const Launch & launch, uint32_t wave_size, uint32_t lds_limit) {
    if (launch.threads == 0 || launch.threads > Block::max_threads || launch.threads % wave_size != 0) {
        return std::string("kernel ") + launch.kernel + ": " + std::to_string(launch.threads) + " threads per block; expected a multiple of the wave size " +
               std::to_string(wave_size) + " up to " + std::to_string(Block::max_threads);
    }
    if (launch.lds_bytes > lds_limit) {
        return std::string("kernel ") + launch.kernel + ": " + std::to_string(launch.lds_bytes) + " bytes of LDS; a block may have " +
               std::to_string(lds_limit);
    }
    // Two products of 32-bit numbers: 96 bits.
    const uint64_t plane = uint64_t(launch.grid[0]) * launch.grid[1];
    if (plane > std::numeric_limits<uint32_t>::max() || plane * launch.grid[2] > std::numeric_limits<uint32_t>::max()) {
        return std::string("kernel ") + launch.kernel + ": a grid of 2^32 or more blocks";
    }
    return "";
}

// Hands out blocks and keeps the first fault.
class Grid {
public:
    Grid(const BlockSettings & settings, uint64_t count) : settings_(settings), count_(count) {
        if (settings.random_order) {
            shuffle();
        }
    }

    // Runs blocks until none is left. Called by every worker at the same time.
    void work() noexcept {
        // A worker keeps its stacks and LDS from launch to launch.
        static thread_local Block block;
        uint64_t                  position = 0;
        try {
            block.configure(settings_);
            while ((position = next_.fetch_add(1, std::memory_order_relaxed)) < end_.load(std::memory_order_relaxed)) {
                const std::string message = block.run(order_.empty() ? position : order_[position]);
                if (!message.empty()) {
                    report(position, message);
                }
            }
        } catch (const std::bad_alloc &) {
            report(position, std::string("kernel ") + settings_.kernel + ": out of memory for the threads of a block");
        }
    }

    std::string fault() const { return fault_; }

private:
    void shuffle() {
        order_.resize(count_);
        Random random(settings_.seed);
        for (uint64_t i = 0; i < count_; i++) {
            const uint64_t j = random.below(i + 1);
            order_[i]        = order_[j];
            order_[j]        = uint32_t(i);
        }
    }

    // Blocks are handed out in order, so those before `position` have begun and will be heard: which fault is reported
    // does not depend on the workers' timing.
    void report(uint64_t position, const std::string & message) {
        std::lock_guard<std::mutex> lock(mutex_);
        if (position < fault_position_) {
            fault_position_ = position;
            fault_          = message;
            end_.store(position, std::memory_order_relaxed);
        }
    }

    const BlockSettings &  settings_;
    const uint64_t         count_;
    std::vector<uint32_t>  order_;  // empty: ascending
    std::atomic<uint64_t>  next_{ 0 };
    std::atomic<uint64_t>  end_{ count_ };
    std::mutex             mutex_;
    uint64_t               fault_position_ = std::numeric_limits<uint64_t>::max();
    std::string            fault_;
};

}  // namespace

std::string launch_blocks(const Launch & launch, uint32_t wave_size, uint32_t lds_limit, bool checked,
                          void (*body)(Block & block, uint32_t thread, const void * arguments), const void * arguments) {
    Options     options;
    std::string error = read_options(options);
    if (error.empty() && launch.grid[0] != 0 && launch.grid[1] != 0 && launch.grid[2] != 0) {
        error = check(launch, wave_size, lds_limit);
    }
    const uint64_t blocks = uint64_t(launch.grid[0]) * launch.grid[1] * launch.grid[2];
    if (!error.empty() || blocks == 0) {
        return error;
    }

    BlockSettings settings = {};
    settings.kernel        = launch.kernel;
    std::copy(launch.grid, launch.grid + 3, settings.grid);
    settings.threads      = launch.threads;
    settings.wave_size    = wave_size;
    settings.lds_bytes    = launch.lds_bytes;
    settings.regions      = launch.regions;
    settings.region_count = launch.region_count;
    settings.poison_lds   = checked;
    settings.race_check   = checked && options.race_check;
    settings.random_order = options.random_order;
    settings.seed         = options.seed;
    settings.body         = body;
    settings.arguments    = arguments;

    try {
        Grid           grid(settings, blocks);
        const uint64_t workers = std::min<uint64_t>(blocks, uint64_t(std::max(1, launch.workers)));
        ThreadPool::instance().run(int(workers) - 1, [](void * context) { static_cast<Grid *>(context)->work(); }, &grid);
        return grid.fault();
    } catch (const std::bad_alloc &) {
        return std::string("kernel ") + launch.kernel + ": out of memory for the order of the blocks";
    }
}

}  // namespace wavesmith::host
