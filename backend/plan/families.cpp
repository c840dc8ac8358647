#include <string.h>

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

}  // namespace wavesmith
