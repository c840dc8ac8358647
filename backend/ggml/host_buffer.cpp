#include "host_buffer.h"

#include <stdint.h>

#include "ggml-backend-impl.h"
#include "log.h"

namespace wavesmith {

static const char * get_name(ggml_backend_buffer_type_t) {
    return "WAVESMITH_Host";
}

static ggml_backend_buffer_t alloc_buffer(ggml_backend_buffer_type_t type, size_t bytes) {
    ggml_backend_buffer_t buffer = ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), bytes);
    if (buffer != nullptr) {
        buffer->buft = type;
    }
    return buffer;
}

static size_t get_alignment(ggml_backend_buffer_type_t) {
    return ggml_backend_buft_get_alignment(ggml_backend_cpu_buffer_type());
}

static bool is_host(ggml_backend_buffer_type_t) {
    return true;
}

static ggml_backend_buffer_type make_type(ggml_backend_dev_t device) {
    // By field name: the members of these structs differ between versions of ggml.
    ggml_backend_buffer_type type = {};
    type.iface.get_name           = get_name;
    type.iface.alloc_buffer       = alloc_buffer;
    type.iface.get_alignment      = get_alignment;
    type.iface.is_host            = is_host;
    type.device                   = device;
    return type;
}

ggml_backend_buffer_type_t host_buffer_type(ggml_backend_dev_t device) {
    static ggml_backend_buffer_type type = make_type(device);
    return &type;
}

ggml_backend_buffer_t host_buffer_from_pointer(ggml_backend_dev_t device, void * address, size_t bytes) {
    const size_t alignment = get_alignment(nullptr);
    if (reinterpret_cast<uintptr_t>(address) % alignment != 0) {
        log(LogLevel::error, "memory of a mapped model starts at %p, which is not a multiple of %zu; load it without mmap", address, alignment);
        return nullptr;
    }
    ggml_backend_buffer_t buffer = ggml_backend_cpu_buffer_from_ptr(address, bytes);
    if (buffer != nullptr) {
        buffer->buft = host_buffer_type(device);
    }
    return buffer;
}

}  // namespace wavesmith
