// Record of which kernel ran each operation, or why it was left to stock (WAVESMITH_LEDGER). docs/module.md has the format.
#pragma once

#include <string>

#include "ggml.h"

namespace wavesmith {

// True if a ledger is asked for; the other functions do nothing otherwise.
bool ledger_is_on();

// Makes sure that a ledger is written at exit, be it an empty one. Called when the backend is registered.
void ledger_start();

// Counts one run of `node` by `kernel`, the name that plan/dispatch.h reports.
void ledger_ran(const ggml_tensor * node, const std::string & kernel);

// Notes that `node` was left to stock. Counted once per operation, type and shape, since ggml asks about one node many times.
void ledger_refused(const ggml_tensor * node, const std::string & reason);

}  // namespace wavesmith
