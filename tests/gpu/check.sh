#!/bin/bash
# Checks the `cuda` target on an NVIDIA GPU in one go, in about 10 minutes on 16 cores and without a network:
#
#     tests/gpu/check.sh LLAMA OUT [STEP…]
#
# LLAMA is a llama.cpp source tree patched by `wavesmith patch apply`, or a tar file of one. OUT gets gpu-cuda.json and the logs;
# golden outputs of stock go to OUT/golden. Steps: build, choose, operations, products, models, off, memory; default: all but choose.
# Needs nvcc, cmake, a C++17 compiler, and python3 with numpy. Exit code 1 if something failed, after all that could be done.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
if [ $# -lt 2 ]; then
    sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
exec python3 -u "$here/check.py" "$@"
