// Keeps a module that was built for one ggml out of a program that runs another.
//
// ggml's vtables and operation numbers change between releases while GGML_BACKEND_API_VERSION stays the same, so a foreign
// module would crash or compute the wrong operation.
#pragma once

namespace wavesmith {

// True if the running ggml is the one this module was built for. Else the first call prints one line that names both.
bool is_for_running_ggml();

}  // namespace wavesmith
