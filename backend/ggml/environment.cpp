#include "environment.h"

#include <stdlib.h>
#include <string.h>

#include <vector>

#include "../plan/dispatch.h"
#include "../plan/lds_limit.h"
#include "log.h"

namespace wavesmith {

static const char * const kernel_names[kernel_count] = { "mmq", "mmvq", "gemm", "fattn" };

static constexpr uint32_t all_kernels = (1u << kernel_count) - 1;

const char * kernel_name(Kernel kernel) {
    return kernel_names[static_cast<int>(kernel)];
}

// The variable's value, or nullptr where it is unset or empty.
static const char * value_of(const char * variable) {
    const char * value = getenv(variable);
    return value != nullptr && *value != '\0' ? value : nullptr;
}

static LogLevel read_log_level() {
    static const char * const names[] = { "error", "warn", "info", "debug" };
    const char *              value   = value_of("WAVESMITH_LOG");
    if (value == nullptr) {
        return LogLevel::warn;
    }
    for (int i = 0; i < 4; ++i) {
        if (strcmp(value, names[i]) == 0) {
            return static_cast<LogLevel>(i);
        }
    }
    log(LogLevel::warn, "WAVESMITH_LOG=%s: expected error, warn, info or debug; using warn", value);
    return LogLevel::warn;
}

static bool read_enabled() {
    const char * value = value_of("WAVESMITH");
    if (value == nullptr || strcmp(value, "1") == 0) {
        return true;
    }
    if (strcmp(value, "0") == 0) {
        return false;
    }
    log(LogLevel::warn, "WAVESMITH=%s: expected 0 or 1; the kernels stay on", value);
    return true;
}

static std::vector<std::string> split_list(const char * list) {
    std::vector<std::string> items;
    std::string              item;
    for (const char * c = list;; ++c) {
        if (*c == ',' || *c == '\0') {
            if (!item.empty()) {
                items.push_back(item);
            }
            item.clear();
            if (*c == '\0') {
                return items;
            }
        } else if (*c != ' ') {
            item += *c;
        }
    }
}

static uint32_t kernel_bit(const std::string & name) {
    for (int i = 0; i < kernel_count; ++i) {
        if (name == kernel_names[i]) {
            return 1u << i;
        }
    }
    return 0;
}

// "a,b" runs only these, "-a" all but a. With both forms, the plain names are the set that the others are left out of.
static uint32_t read_kernels() {
    const char * value = value_of("WAVESMITH_KERNELS");
    if (value == nullptr) {
        return all_kernels;
    }
    uint32_t    named     = 0;
    uint32_t    left_out  = 0;
    bool        any_named = false;
    std::string unknown;
    for (const std::string & item : split_list(value)) {
        const bool        leaves_out = item[0] == '-';
        const std::string name       = leaves_out ? item.substr(1) : item;
        const uint32_t    bit        = kernel_bit(name);
        if (bit == 0) {
            unknown += unknown.empty() ? name : ", " + name;
        }
        (leaves_out ? left_out : named) |= bit;
        any_named |= !leaves_out;
    }
    if (!unknown.empty()) {
        log(LogLevel::warn, "WAVESMITH_KERNELS: no kernel is called %s; known are mmq, mmvq, gemm and fattn", unknown.c_str());
    }
    return (any_named ? named : all_kernels) & ~left_out;
}

static std::string known_families() {
    std::string names;
    for (int i = 0; i < family_count; ++i) {
        names += (i == 0 ? "" : i + 1 == family_count ? " or " : ", ");
        names += family_name(static_cast<Family>(i));
    }
    return names;
}

// False where the variable names no family: running another one than asked for would mislead.
static bool read_family(Family & family) {
    const char * value = value_of("WAVESMITH_HOST_FAMILY");
    if (value == nullptr || family_from_name(value, family)) {
        return true;
    }
    log(LogLevel::error, "WAVESMITH_HOST_FAMILY=%s: expected %s; offering no device", value, known_families().c_str());
    return false;
}

// False where the variable is no number: running over a limit that was meant would be worse than not running.
static bool check_lds_limit() {
    const LdsLimit limit = read_lds_limit();
    if (!limit.error.empty()) {
        log(LogLevel::error, "%s; offering no device", limit.error.c_str());
    }
    return limit.error.empty();
}

static Environment read_environment() {
    set_log_level(read_log_level());
    Environment result;
    result.enabled     = read_enabled();
    result.kernel_mask = read_kernels();
    result.enabled &= read_family(result.family);
    result.enabled &= check_lds_limit();
    if (const char * path = value_of("WAVESMITH_LEDGER")) {
        result.ledger_path = path;
    }
    return result;
}

const Environment & environment() {
    static const Environment instance = read_environment();
    return instance;
}

}  // namespace wavesmith
