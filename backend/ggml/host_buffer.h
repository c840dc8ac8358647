// Memory of the host device: ordinary CPU memory under a buffer type of our own.
//
// The own type makes llama.cpp's loader place weights here before it repacks them for stock's CPU kernels (which our
// kernels could not read), and being host memory it stays usable by the CPU backend for whatever we leave to stock.
#pragma once

#include "ggml-backend.h"

namespace wavesmith {

// The buffer type "WAVESMITH_Host". `device` is the device that owns it; only the first call's value counts.
ggml_backend_buffer_type_t host_buffer_type(ggml_backend_dev_t device);

// A buffer of that type over memory that the caller keeps (mmap). nullptr where ggml could not use the address.
ggml_backend_buffer_t host_buffer_from_pointer(ggml_backend_dev_t device, void * address, size_t bytes);

}  // namespace wavesmith
