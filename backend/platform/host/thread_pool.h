// The process-wide threads that run blocks beside the calling thread.
//
// Safe with concurrent callers: each computes on its own thread too, so it never depends on a pool thread being free.
// After fork() the child starts with an empty pool of its own and may launch; a launch that was running in another thread
// of the parent does not continue in the child.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace wavesmith::host {

class ThreadPool {
public:
    // The pool of this process.
    static ThreadPool & instance();

    ThreadPool() = default;
    ThreadPool(const ThreadPool &)             = delete;
    ThreadPool & operator=(const ThreadPool &) = delete;
    ~ThreadPool();

    // Calls work(context) on the calling thread and at the same time on up to `helpers` pool threads; returns when every
    // call that began has ended. Helpers that find no time before the caller is done do not call at all. `work` must not
    // throw. The pool grows to `helpers` threads, or to as many as the system grants.
    void run(int helpers, void (*work)(void * context), void * context);

private:
    struct Job {
        void (*work)(void *);
        void *                  context;
        int                     wanted;  // calls that may still begin
        int                     active;  // calls that have begun and not ended
        std::condition_variable idle;
    };

    void grow(size_t count);
    void serve();

    std::mutex               mutex_;
    std::condition_variable  wake_;
    std::deque<Job *>        jobs_;  // that want helpers
    std::vector<std::thread> threads_;
    bool                     stop_ = false;
};

}  // namespace wavesmith::host
