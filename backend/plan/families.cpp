#include <stdlib.h>
#include <string.h>

#include "../arch/all.h"
#include "compiled_kernel.h"
#include "dispatch.h"

namespace wavesmith {

static const char * const names[family_count] = { "gcn", "cdna2", "cdna3", "cdna4", "rdna2", "rdna3", "rdna3.5", "rdna4", "cuda" };

const char * family_name(Family family) {
    return names[int(family)];
}

bool family_from_name(const char * name, Family & family) {
    for (int i = 0; i < family_count; ++i) {
        if (strcmp(name, names[i]) == 0) {
            family = Family(i);
            return true;
        }
    }
    return false;
}

// Least compute capability with the int8 instructions of arch/nvidia.h.
static constexpr int least_sm = 80;

template <class Arch> static bool has_target(const char * target, size_t length) {
    for (const char * known : Arch::targets) {
        if (strlen(known) == length && strncmp(known, target, length) == 0) {
            return true;
        }
    }
    return false;
}

bool family_from_target(const char * target, Family & family) {
    if (strncmp(target, "sm_", 3) == 0) {
        family = Family::cuda;
        return atoi(target + 3) >= least_sm;
    }
    const size_t length = strcspn(target, ":");
    const struct {
        Family family;
        bool   has;
    } families[] = {
        { Family::gcn, has_target<arch::Gcn>(target, length) },         { Family::cdna2, has_target<arch::Cdna2>(target, length) },
        { Family::cdna3, has_target<arch::Cdna3>(target, length) },     { Family::cdna4, has_target<arch::Cdna4>(target, length) },
        { Family::rdna2, has_target<arch::Rdna2>(target, length) },     { Family::rdna3, has_target<arch::Rdna3>(target, length) },
        { Family::rdna3_5, has_target<arch::Rdna3_5>(target, length) }, { Family::rdna4, has_target<arch::Rdna4>(target, length) },
    };
    for (const auto & known : families) {
        if (known.has) {
            family = known.family;
            return true;
        }
    }
    return false;
}

bool family_is_built(Family family) {
    return family_is_compiled(family);
}

}  // namespace wavesmith
