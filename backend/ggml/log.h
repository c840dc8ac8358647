// One-line messages of the module on stderr, filtered by WAVESMITH_LOG.
//
// Not ggml's log: programs such as llama-bench silence that, and a refused module or a mistyped setting must be seen.
#pragma once

namespace wavesmith {

enum class LogLevel : int { error, warn, info, debug };

// Messages above this level are dropped.
void set_log_level(LogLevel level);

// Writes "wavesmith: <message>\n" with one write, printf-style.
__attribute__((format(printf, 2, 3))) void log(LogLevel level, const char * format, ...);

}  // namespace wavesmith
