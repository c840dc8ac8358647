#include "host_backend.h"

#include <sched.h>
#include <string.h>

#include <algorithm>
#include <string>

#include "../plan/dispatch.h"
#include "environment.h"
#include "ggml-backend-impl.h"
#include "host_buffer.h"
#include "ledger.h"
#include "log.h"
#include "op_match.h"
#include "tree_identity.h"

// All vtables are filled by field name: their members differ between versions of ggml.
namespace wavesmith {
namespace {

// A backend instance: what ggml_backend_set_n_threads changes.
struct HostContext {
    int threads;
};

int usable_cpus() {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

Kernel kernel_for(const MulMat & problem) {
    return scale_group(problem.weights.type) > 0 ? Kernel::mmq : Kernel::gemm;
}

// Empty if our kernels would run this MUL_MAT or MUL_MAT_ID, else why stock should.
std::string refusal(const ggml_tensor * node) {
    MulMat      problem;
    std::string reason = match_mul_mat(node, problem);
    if (!reason.empty()) {
        return reason;
    }
    if (supports(problem, environment().family, reason) != Result::ok) {
        return reason.empty() ? "not supported" : reason;
    }
    const Kernel kernel = kernel_for(problem);
    return environment().allows(kernel) ? "" : std::string("WAVESMITH_KERNELS leaves out ") + kernel_name(kernel);
}

bool is_matrix_product(const ggml_tensor * node) {
    return node->op == GGML_OP_MUL_MAT || node->op == GGML_OP_MUL_MAT_ID;
}

// backend

ggml_guid_t backend_guid() {
    static ggml_guid guid = { 0x77, 0x61, 0x76, 0x65, 0x73, 0x6d, 0x69, 0x74, 0x68, 0x2d, 0x68, 0x6f, 0x73, 0x74, 0x00, 0x01 };
    return &guid;
}

const char * backend_get_name(ggml_backend_t) {
    return "WAVESMITH";
}

void backend_free(ggml_backend_t backend) {
    delete static_cast<HostContext *>(backend->context);
    delete backend;
}

ggml_status run_matrix_product(const ggml_tensor * node, int threads) {
    MulMat      problem;
    std::string message = match_mul_mat(node, problem);
    if (message.empty() && !has_data(node)) {
        message = "a tensor has no memory";
    }
    HostOptions options;
    options.family  = environment().family;
    options.threads = threads;
    std::string kernel;
    Result      result = Result::unsupported;
    if (message.empty()) {
        result = run(problem, options, message, ledger_is_on() ? &kernel : nullptr);
    }
    if (result != Result::ok) {
        log(LogLevel::error, "%s '%s' failed: %s", ggml_op_name(node->op), node->name, message.c_str());
        return result == Result::out_of_memory ? GGML_STATUS_ALLOC_FAILED : GGML_STATUS_FAILED;
    }
    ledger_ran(node, kernel);
    return GGML_STATUS_SUCCESS;
}

ggml_status backend_graph_compute(ggml_backend_t backend, ggml_cgraph * graph) {
    const int threads = static_cast<HostContext *>(backend->context)->threads;
    for (int i = 0; i < ggml_graph_n_nodes(graph); ++i) {
        const ggml_tensor * node = ggml_graph_node(graph, i);
        if ((node->flags & GGML_TENSOR_FLAG_COMPUTE) == 0 || is_view_op(node->op)) {
            continue;
        }
        if (!is_matrix_product(node)) {
            log(LogLevel::error, "was given %s '%s', which it does not offer", ggml_op_name(node->op), node->name);
            return GGML_STATUS_FAILED;
        }
        const ggml_status status = run_matrix_product(node, threads);
        if (status != GGML_STATUS_SUCCESS) {
            return status;
        }
    }
    return GGML_STATUS_SUCCESS;
}

void backend_set_n_threads(ggml_backend_t backend, int threads) {
    static_cast<HostContext *>(backend->context)->threads = std::max(1, threads);
}

// device

const char * device_get_name(ggml_backend_dev_t) {
    return "WAVESMITH";
}

const char * device_get_description(ggml_backend_dev_t) {
    static const std::string description =
        std::string("wavesmith " WAVESMITH_VERSION ", ") + family_name(environment().family) + " kernels on the CPU";
    return description.c_str();
}

// The memory is the CPU's and is reported by its device.
void device_get_memory(ggml_backend_dev_t, size_t * free, size_t * total) {
    *free  = 0;
    *total = 0;
}

enum ggml_backend_dev_type device_get_type(ggml_backend_dev_t) {
    return GGML_BACKEND_DEVICE_TYPE_ACCEL;
}

// ggml has this member since 0.25.
template <class Caps> auto allow_mmap(Caps & caps, int) -> decltype(caps.mmap_support, void()) {
    caps.mmap_support = true;
}

template <class Caps> void allow_mmap(Caps &, long) {}

void device_get_props(ggml_backend_dev_t device, ggml_backend_dev_props * props) {
    *props             = {};
    props->name        = device_get_name(device);
    props->description = device_get_description(device);
    props->type        = device_get_type(device);
    device_get_memory(device, &props->memory_free, &props->memory_total);
    props->caps.buffer_from_host_ptr = true;
    allow_mmap(props->caps, 0);
}

ggml_backend_t device_init_backend(ggml_backend_dev_t device, const char *) {
    ggml_backend * backend       = new ggml_backend();
    backend->guid                = backend_guid();
    backend->iface.get_name      = backend_get_name;
    backend->iface.free          = backend_free;
    backend->iface.graph_compute = backend_graph_compute;
    backend->device              = device;
    backend->context             = new HostContext{ usable_cpus() };
    return backend;
}

ggml_backend_buffer_type_t device_get_buffer_type(ggml_backend_dev_t device) {
    return host_buffer_type(device);
}

ggml_backend_buffer_t device_buffer_from_host_ptr(ggml_backend_dev_t device, void * address, size_t bytes, size_t) {
    return host_buffer_from_pointer(device, address, bytes);
}

bool device_supports_op(ggml_backend_dev_t, const ggml_tensor * node) {
    if (is_view_op(node->op)) {
        return true;
    }
    const std::string reason = is_matrix_product(node) ? refusal(node) : "no kernel for this operation";
    if (!reason.empty()) {
        ledger_refused(node, reason);
    }
    return reason.empty();
}

bool device_supports_buft(ggml_backend_dev_t, ggml_backend_buffer_type_t type) {
    return ggml_backend_buft_is_host(type);
}

// registry

const char * reg_get_name(ggml_backend_reg_t) {
    return "WAVESMITH";
}

size_t reg_get_device_count(ggml_backend_reg_t) {
    return 1;
}

ggml_backend_device make_device(ggml_backend_reg_t reg) {
    ggml_backend_device device        = {};
    device.iface.get_name             = device_get_name;
    device.iface.get_description      = device_get_description;
    device.iface.get_memory           = device_get_memory;
    device.iface.get_type             = device_get_type;
    device.iface.get_props            = device_get_props;
    device.iface.init_backend         = device_init_backend;
    device.iface.get_buffer_type      = device_get_buffer_type;
    device.iface.buffer_from_host_ptr = device_buffer_from_host_ptr;
    device.iface.supports_op          = device_supports_op;
    device.iface.supports_buft        = device_supports_buft;
    device.reg                        = reg;
    return device;
}

ggml_backend_dev_t reg_get_device(ggml_backend_reg_t reg, size_t index) {
    static ggml_backend_device device = make_device(reg);
    return index < reg_get_device_count(reg) ? &device : nullptr;
}

void * reg_get_proc_address(ggml_backend_reg_t, const char * name) {
    return strcmp(name, "ggml_backend_set_n_threads") == 0 ? reinterpret_cast<void *>(backend_set_n_threads) : nullptr;
}

ggml_backend_reg make_reg() {
    ggml_backend_reg reg       = {};
    reg.api_version            = GGML_BACKEND_API_VERSION;
    reg.iface.get_name         = reg_get_name;
    reg.iface.get_device_count = reg_get_device_count;
    reg.iface.get_device       = reg_get_device;
    reg.iface.get_proc_address = reg_get_proc_address;
    return reg;
}

}  // namespace

}  // namespace wavesmith

ggml_backend_reg_t ggml_backend_wavesmith_reg(void) {
    if (!wavesmith::is_for_running_ggml()) {
        return nullptr;
    }
    wavesmith::ledger_start();
    // Not even an empty backend: llama-bench would name it beside stock's results.
    if (!wavesmith::environment().enabled) {
        return nullptr;
    }
    static ggml_backend_reg reg = wavesmith::make_reg();
    return &reg;
}
