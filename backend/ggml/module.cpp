// The two functions that ggml's loader looks up in a module file; not part of a build that links the module in.
#include <dlfcn.h>

#include "ggml-backend-impl.h"
#include "host_backend.h"
#include "log.h"

extern "C" {
GGML_BACKEND_API ggml_backend_reg_t ggml_backend_init(void);
GGML_BACKEND_API int                ggml_backend_score(void);
}

// Another copy of the backend that the program already has, for example the one it was built with, or nullptr.
// The lookup function is libggml's, which a module does not link.
static ggml_backend_reg_t find_other_copy(ggml_backend_reg_t own) {
    using Lookup               = ggml_backend_reg_t (*)(const char *);
    const auto         by_name = reinterpret_cast<Lookup>(dlsym(RTLD_DEFAULT, "ggml_backend_reg_by_name"));
    ggml_backend_reg_t other   = by_name != nullptr ? by_name(own->iface.get_name(own)) : nullptr;
    return other != own ? other : nullptr;
}

ggml_backend_reg_t ggml_backend_init(void) {
    ggml_backend_reg_t reg = ggml_backend_wavesmith_reg();
    if (reg != nullptr && find_other_copy(reg) != nullptr) {
        wavesmith::log(wavesmith::LogLevel::warn, "the program already has this backend; GGML_BACKEND_PATH is not needed");
        return nullptr;
    }
    return reg;
}

int ggml_backend_score(void) {
    return ggml_backend_wavesmith_reg() != nullptr ? 1 : 0;
}
