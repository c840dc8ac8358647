#include "options.h"

#include <stdlib.h>
#include <string.h>

namespace wavesmith::host {

namespace {

const char * variable(const char * name) {
    const char * value = getenv(name);
    return value != nullptr ? value : "";
}

bool is_on(const char * value) {
    return value[0] != '\0' && strcmp(value, "0") != 0;
}

std::string check_switch(const char * name) {
    const char * value = variable(name);
    if (is_on(value) && strcmp(value, "1") != 0) {
        return std::string(name) + " is \"" + value + "\"; expected 0 or 1";
    }
    return "";
}

bool parse_seed(const char * text, uint64_t & seed) {
    seed = 0;
    for (const char * c = text; *c != '\0'; c++) {
        if (*c < '0' || *c > '9') {
            return false;
        }
        const uint64_t digit = uint64_t(*c - '0');
        if (seed > (UINT64_MAX - digit) / 10) {
            return false;
        }
        seed = seed * 10 + digit;
    }
    return text[0] != '\0';
}

}  // namespace

std::string read_options(Options & options) {
    options = Options();
    for (const char * name : { "WAVESMITH_HOST_CHECKED", "WAVESMITH_HOST_RACECHECK" }) {
        std::string error = check_switch(name);
        if (!error.empty()) {
            return error;
        }
    }
    options.race_check = is_on(variable("WAVESMITH_HOST_RACECHECK"));

    const char * order = variable("WAVESMITH_HOST_ORDER");
    if (order[0] != '\0') {
        if (!parse_seed(order, options.seed)) {
            return std::string("WAVESMITH_HOST_ORDER is \"") + order + "\"; expected a decimal seed below 2^64";
        }
        options.random_order = true;
    }
    return "";
}

bool checked_requested() {
    return is_on(variable("WAVESMITH_HOST_CHECKED")) || is_on(variable("WAVESMITH_HOST_RACECHECK"));
}

}  // namespace wavesmith::host
