#include "log.h"

#include <stdarg.h>
#include <stdio.h>

#include <atomic>

namespace wavesmith {

static std::atomic<int> highest_level{ static_cast<int>(LogLevel::warn) };

void set_log_level(LogLevel level) {
    highest_level.store(static_cast<int>(level), std::memory_order_relaxed);
}

void log(LogLevel level, const char * format, ...) {
    if (static_cast<int>(level) > highest_level.load(std::memory_order_relaxed)) {
        return;
    }
    char    message[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    fprintf(stderr, "wavesmith: %s\n", message);
}

}  // namespace wavesmith
