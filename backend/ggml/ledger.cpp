#include "ledger.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <tuple>

#include "environment.h"
#include "log.h"

namespace wavesmith {
namespace {

// One line of the ledger but for its count. Sizes are 0 where an operand does not exist.
struct Line {
    std::string op;
    std::string type;          // of src0
    int64_t     m = 0;         // rows of src0
    int64_t     n = 0;         // columns: ne[1] of src1 for MUL_MAT, tokens for MUL_MAT_ID
    int64_t     k = 0;         // ne[0] of src0
    int64_t     batch[2] = {}; // ne[2] and ne[3] of the output; 1, 1 for MUL_MAT_ID
    int64_t     experts = 0;   // MUL_MAT_ID
    int64_t     used    = 0;   // experts per token
    std::string kernel;        // empty where stock ran it
    std::string reason;        // empty where we ran it

    auto key() const { return std::tie(op, type, m, n, k, batch[0], batch[1], experts, used, kernel, reason); }

    bool operator<(const Line & other) const { return key() < other.key(); }
};

struct Ledger {
    std::mutex              mutex;
    std::map<Line, int64_t> counts;
};

void write_at_exit();

// Never destroyed: nodes may still run while the process's static objects go.
Ledger & ledger() {
    static Ledger * instance = [] {
        atexit(write_at_exit);
        return new Ledger;
    }();
    return *instance;
}

Line describe(const ggml_tensor * node) {
    Line line;
    line.op = ggml_op_name(node->op);
    if (const ggml_tensor * weights = node->src[0]) {
        line.type = ggml_type_name(weights->type);
        line.k    = weights->ne[0];
        line.m    = weights->ne[1];
    }
    if (node->op == GGML_OP_MUL_MAT_ID) {
        line.n        = node->ne[2];
        line.batch[0] = 1;
        line.batch[1] = 1;
        line.experts  = node->src[0]->ne[2];
        line.used     = node->ne[1];
    } else {
        line.n        = node->ne[1];
        line.batch[0] = node->ne[2];
        line.batch[1] = node->ne[3];
    }
    return line;
}

// Names come from ggml and from us, but a reason may quote anything.
std::string json_string(const std::string & text) {
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            result += '\\';
            result += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            char escape[8];
            snprintf(escape, sizeof(escape), "\\u%04x", c);
            result += escape;
        } else {
            result += c;
        }
    }
    return result + '"';
}

std::string json_line(const Line & line, int64_t count) {
    char numbers[320];
    snprintf(numbers, sizeof(numbers),
             "\"m\": %lld, \"n\": %lld, \"k\": %lld, \"batch\": [%lld, %lld], \"experts\": %lld, \"used\": %lld, \"count\": %lld",
             (long long) line.m, (long long) line.n, (long long) line.k, (long long) line.batch[0], (long long) line.batch[1],
             (long long) line.experts, (long long) line.used, (long long) count);
    std::string result = "{\"op\": " + json_string(line.op) + ", \"type\": " + json_string(line.type) + ", " + numbers;
    result += std::string(", \"ran\": ") + (line.kernel.empty() ? "\"stock\"" : "\"wavesmith\"");
    result += ", \"kernel\": " + (line.kernel.empty() ? "null" : json_string(line.kernel));
    result += ", \"reason\": " + (line.kernel.empty() ? json_string(line.reason) : "null");
    return result + "}\n";
}

std::string text_line(const Line & line, int64_t count) {
    char shape[160];
    if (line.experts > 0) {
        snprintf(shape, sizeof(shape), "%lldx%lldx%lld, %lld of %lld experts", (long long) line.m, (long long) line.n, (long long) line.k,
                 (long long) line.used, (long long) line.experts);
    } else if (line.batch[0] != 1 || line.batch[1] != 1) {
        snprintf(shape, sizeof(shape), "%lldx%lldx%lld, batch %lldx%lld", (long long) line.m, (long long) line.n, (long long) line.k,
                 (long long) line.batch[0], (long long) line.batch[1]);
    } else {
        snprintf(shape, sizeof(shape), "%lldx%lldx%lld", (long long) line.m, (long long) line.n, (long long) line.k);
    }
    char row[400];
    snprintf(row, sizeof(row), "%-16s %-8s %-36s %8lld  ", line.op.c_str(), line.type.c_str(), shape, (long long) count);
    return row + (line.kernel.empty() ? "stock: " + line.reason : line.kernel) + "\n";
}

std::string render(bool as_json) {
    Ledger &                          source = ledger();
    const std::lock_guard<std::mutex> lock(source.mutex);
    char                              header[400];
    snprintf(header, sizeof(header), "%-16s %-8s %-36s %8s  %s\n", "op", "type", "MxNxK", "count", "kernel");
    std::string text = as_json ? "" : header;
    for (const auto & [line, count] : source.counts) {
        text += as_json ? json_line(line, count) : text_line(line, count);
    }
    return text;
}

bool write_whole(const std::string & path, const std::string & text) {
    FILE * file = fopen(path.c_str(), "w");
    if (file == nullptr) {
        return false;
    }
    const bool written = fwrite(text.data(), 1, text.size(), file) == text.size();
    const bool flushed = fflush(file) == 0 && fsync(fileno(file)) == 0;
    return (fclose(file) == 0) && written && flushed;
}

// Beside the target and renamed over it, so that a reader or a full disk never sees half a ledger.
void write_file(const std::string & path, const std::string & text) {
    const std::string partial = path + "." + std::to_string(getpid()) + ".partial";
    if (!write_whole(partial, text) || rename(partial.c_str(), path.c_str()) != 0) {
        const int error = errno;
        unlink(partial.c_str());
        log(LogLevel::error, "cannot write the ledger %s: %s", path.c_str(), strerror(error));
    }
}

void write_at_exit() {
    const std::string & path = environment().ledger_path;
    if (path == "-") {
        const std::string text = render(false);
        fwrite(text.data(), 1, text.size(), stderr);
    } else {
        write_file(path, render(true));
    }
}

}  // namespace

bool ledger_is_on() {
    return !environment().ledger_path.empty();
}

void ledger_start() {
    if (ledger_is_on()) {
        ledger();
    }
}

void ledger_ran(const ggml_tensor * node, const std::string & kernel) {
    if (!ledger_is_on()) {
        return;
    }
    Line line   = describe(node);
    line.kernel = kernel.empty() ? "unnamed" : kernel;
    const std::lock_guard<std::mutex> lock(ledger().mutex);
    ledger().counts[line] += 1;
}

void ledger_refused(const ggml_tensor * node, const std::string & reason) {
    if (!ledger_is_on()) {
        return;
    }
    Line line   = describe(node);
    line.reason = reason;
    const std::lock_guard<std::mutex> lock(ledger().mutex);
    ledger().counts[line] = 1;
}

}  // namespace wavesmith
