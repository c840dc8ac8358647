// Runs matrix products on a GPU: launches only, on one stream, with memory that the caller lends.
#pragma once

#include <string>

#include "../kernels/q8_1_blocks.h"
#include "dispatch.h"

namespace wavesmith {

// The device and stream that a product runs on. Memory from `allocate` must stay usable by work on the stream until the caller
// knows that all launches of the call have been queued.
struct DeviceEnvironment {
    Family   family;
    int      device;         // the runtime's number; already current
    int      compute_units;
    size_t   lds_limit;      // bytes of LDS that one block may have
    void *   stream;
    void *   context;        // for `allocate`
    void * (*allocate)(void * context, size_t bytes);
};

// Activations quantised by an earlier product of the same call, so that products with the same input share them.
struct QuantizedActivations {
    Tensor          source = {};
    Q8_1Layout      layout = Q8_1Layout::d4s8;
    const uint8_t * blocks = nullptr;
};

// Whether products of this kind have been measured not to be slower than stock's on the family; `reason` says why not.
bool is_worthwhile(const MulMat & problem, Family family, std::string & reason);

// Result::unsupported, with the reason, if nothing was launched; Result::fault if a launch failed. `kernel` may be nullptr.
// Never waits for the device, reads from it or allocates: it can be captured into a graph.
Result run_on_device(const MulMat & problem, const DeviceEnvironment & environment, QuantizedActivations & quantized, std::string & message,
                     std::string * kernel);

}  // namespace wavesmith
