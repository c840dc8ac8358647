"""A program of its own: asks the HIP runtime library named by its argument for its devices and their memory, as JSON.

It runs apart from the doctor because a broken driver can crash or hang whoever loads the library. Only calls whose
signatures have been the same in every HIP release are used.
"""

import ctypes
import json
import sys

_NAME_BYTES = 256


def query(library_path: str) -> dict:
    hip = ctypes.CDLL(library_path)
    version, count = ctypes.c_int(0), ctypes.c_int(0)
    status = hip.hipGetDeviceCount(ctypes.byref(count))
    if status != 0:
        return {"error": f"hipGetDeviceCount returned {status}", "devices": []}
    hip.hipRuntimeGetVersion(ctypes.byref(version))
    return {"version": version.value, "devices": [_device(hip, index) for index in range(count.value)]}


def _device(hip: ctypes.CDLL, index: int) -> dict:
    name, pci = ctypes.create_string_buffer(_NAME_BYTES), ctypes.create_string_buffer(_NAME_BYTES)
    free, total = ctypes.c_size_t(0), ctypes.c_size_t(0)
    hip.hipDeviceGetName(name, _NAME_BYTES, index)
    hip.hipDeviceGetPCIBusId(pci, _NAME_BYTES, index)
    if hip.hipSetDevice(index) == 0:
        hip.hipMemGetInfo(ctypes.byref(free), ctypes.byref(total))
    return {
        "index": index,
        "name": name.value.decode("utf-8", "replace"),
        "pci": pci.value.decode("ascii", "replace"),
        "free": free.value,
        "total": total.value,
    }


if __name__ == "__main__":
    json.dump(query(sys.argv[1]), sys.stdout)
