#include "thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <memory>
#include <system_error>

namespace wavesmith::host {

namespace {

// Destroyed at exit or when the library is unloaded: its threads must not outlive the code they run.
std::unique_ptr<ThreadPool> & holder() {
    static std::unique_ptr<ThreadPool> pool;
    return pool;
}

std::mutex & holder_mutex() {
    static std::mutex mutex;
    return mutex;
}

// fork() copies neither the pool's threads nor a consistent state of its locks: the child leaves the old pool alone.
void before_fork() {
    holder_mutex().lock();
}

void after_fork_in_parent() {
    holder_mutex().unlock();
}

void after_fork_in_child() {
    (void) holder().release();
    holder_mutex().unlock();
}

}  // namespace

ThreadPool & ThreadPool::instance() {
    static const int registered = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    (void) registered;
    std::lock_guard<std::mutex> lock(holder_mutex());
    if (holder() == nullptr) {
        holder() = std::make_unique<ThreadPool>();
    }
    return *holder();
}

ThreadPool::~ThreadPool() {
    {
        std::lock_guard<std::mutex> lock(mutex_);
        stop_ = true;
    }
    wake_.notify_all();
    for (std::thread & thread : threads_) {
        thread.join();
    }
}

void ThreadPool::grow(size_t count) {
    try {
        while (threads_.size() < count) {
            threads_.emplace_back([this] { serve(); });
        }
    } catch (const std::system_error &) {
        // No more threads to be had: the work takes longer but gets done.
    }
}

void ThreadPool::run(int helpers, void (*work)(void *), void * context) {
    if (helpers <= 0) {
        work(context);
        return;
    }
    Job job{ work, context, helpers, 0, {} };
    {
        std::lock_guard<std::mutex> lock(mutex_);
        grow(size_t(helpers));
        jobs_.push_back(&job);
    }
    if (helpers == 1) {
        wake_.notify_one();
    } else {
        wake_.notify_all();
    }
    work(context);

    std::unique_lock<std::mutex> lock(mutex_);
    jobs_.erase(std::remove(jobs_.begin(), jobs_.end(), &job), jobs_.end());
    job.idle.wait(lock, [&job] { return job.active == 0; });
}

void ThreadPool::serve() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
        wake_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
        if (stop_) {
            return;
        }
        Job & job = *jobs_.front();
        job.active++;
        if (--job.wanted == 0) {
            jobs_.pop_front();
        }
        lock.unlock();
        job.work(job.context);
        lock.lock();
        if (--job.active == 0) {
            job.idle.notify_all();
        }
    }
}

}  // namespace wavesmith::host
