// The ggml backend of the host target: one ACCEL device "WAVESMITH" whose matrix products run our kernels on the CPU.
#pragma once

#include "ggml-backend.h"

extern "C" {
// The name that a patched ggml registers when the module is linked in. nullptr, which ggml passes over, if this module is
// not for the running ggml or is switched off.
GGML_BACKEND_API ggml_backend_reg_t ggml_backend_wavesmith_reg(void);
}
