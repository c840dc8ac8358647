"""Machines as the doctor would record them: what the kernel, the tools and a ROCm folder say, in their own formats.

Each function of MACHINES gives a fresh Record. Formats: the kernel's KFD topology, rocminfo, amd-smi and hipInfo as of
ROCm 5.7 to 7.2.
"""

from __future__ import annotations

import json

from wavesmith.doctor.probe import HIP_QUERY, PathInfo, Record, ToolRun

GIB = 1 << 30
OS_RELEASE = {
    "arch": 'NAME="Arch Linux"\nPRETTY_NAME="Arch Linux"\nID=arch\nBUILD_ID=rolling\n',
    "fedora": 'NAME="Fedora Linux"\nVERSION="43 (Workstation Edition)"\nID=fedora\nVERSION_ID=43\nPRETTY_NAME="Fedora Linux 43"\n',
    "debian": 'PRETTY_NAME="Debian GNU/Linux 13 (trixie)"\nID=debian\nVERSION_ID="13"\n',
    "ubuntu": 'PRETTY_NAME="Ubuntu 24.04.3 LTS"\nID=ubuntu\nID_LIKE=debian\nVERSION_ID="24.04"\n',
    "opensuse": 'NAME="openSUSE Tumbleweed"\nID="opensuse-tumbleweed"\nID_LIKE="opensuse suse"\nPRETTY_NAME="openSUSE Tumbleweed"\n',
    "nixos": 'ID=nixos\nPRETTY_NAME="NixOS 25.11 (Xantusia)"\n',
}


def machine(distribution: str = "ubuntu", memory: int = 64 * GIB, disk: int = 200 * GIB) -> Record:
    """A machine with g++, cmake, ninja and git, without any GPU."""
    record = Record()
    record.files["/etc/os-release"] = OS_RELEASE[distribution]
    record.files["/proc/meminfo"] = (
        f"MemTotal:       {memory // 1024} kB\nMemFree:        1048576 kB\nMemAvailable:   {memory * 3 // 4 // 1024} kB\nSwapFree:       0 kB\n"
    )
    record.paths["~/.cache"] = PathInfo("folder", "~/.cache", writable=True)
    record.facts.update(
        {
            "system": "Linux",
            "kernel": "6.17.4",
            "machine": "x86_64",
            "python": "3.12.3",
            "virtual environment": True,
            "processors": 16,
            "superuser": False,
            "groups": ["render", "video"],
            "groups after login": ["render", "video"],
            "cache folder": "~/.cache/wavesmith",
            "module folders": ["~/venv/lib/python3.12/site-packages"],
            "disk_free ~/.cache/wavesmith": disk,
        }
    )
    gcc = "(Ubuntu 13.3.0-6ubuntu2~24.04) 13.3.0\nCopyright (C) 2023 Free Software Foundation, Inc.\n"
    program(record, "c++", "/usr/bin/c++", f"c++ {gcc}")
    program(record, "g++", "/usr/bin/g++", f"g++ {gcc}")
    program(record, "cmake", "/usr/bin/cmake", "cmake version 3.31.6\n\nCMake suite maintained and supported by Kitware (kitware.com/cmake).\n")
    program(record, "ninja", "/usr/bin/ninja", "1.12.1\n")
    return record


def program(record: Record, name: str, path: str, version_text: str) -> None:
    record.programs[name] = path
    record.tools[(path, "--version")] = ToolRun(0, version_text)


def without(record: Record, *names: str) -> Record:
    for name in names:
        path = record.programs.pop(name)
        record.tools.pop((path, "--version"))
    return record


# ------------------------------------------------------------------------------------------------ kernel

NODES = "/sys/class/kfd/kfd/topology/nodes"


def kfd_cpu(record: Record, node: int, cores: int = 32, memory: int = 64 * GIB) -> None:
    record.files[f"{NODES}/{node}/properties"] = (
        f"cpu_cores_count {cores}\nsimd_count 0\nmem_banks_count 1\ncaches_count 0\nio_links_count 1\np2p_links_count 0\ncpu_core_id_base 0\n"
        "simd_id_base 0\nmax_waves_per_simd 0\nlds_size_in_kb 0\ngds_size_in_kb 0\nnum_gws 0\nwave_front_size 0\narray_count 0\n"
        "simd_arrays_per_engine 0\ncu_per_simd_array 0\nsimd_per_cu 0\nmax_slots_scratch_cu 0\ngfx_target_version 0\nvendor_id 0\ndevice_id 0\n"
        "location_id 0\ndomain 0\ndrm_render_minor 0\nhive_id 0\nnum_sdma_engines 0\nmax_engine_clk_ccompute 4700\n"
    )
    record.files[f"{NODES}/{node}/mem_banks/0/properties"] = f"heap_type 0\nsize_in_bytes {memory}\nflags 0\nwidth 64\nmem_clk_max 2400\n"


def kfd_gpu(
    record: Record,
    node: int,
    version: int,
    units: int,
    *,
    location: int,
    device: int,
    memory: int,
    minor: int = 128,
    simd_per_cu: int = 2,
    wave: int = 32,
    unique_id: int = 0,
    domain: int = 0,
    heap: int = 1,
) -> None:
    record.files[f"{NODES}/{node}/properties"] = (
        f"cpu_cores_count 0\nsimd_count {units * simd_per_cu}\nmem_banks_count 1\ncaches_count 206\nio_links_count 1\np2p_links_count 0\n"
        f"cpu_core_id_base 0\nsimd_id_base 2147487744\nmax_waves_per_simd 16\nlds_size_in_kb 64\ngds_size_in_kb 0\nnum_gws 64\n"
        f"wave_front_size {wave}\narray_count 12\nsimd_arrays_per_engine 2\ncu_per_simd_array 8\nsimd_per_cu {simd_per_cu}\n"
        f"max_slots_scratch_cu 32\ngfx_target_version {version}\nvendor_id 4098\ndevice_id {device}\nlocation_id {location}\ndomain {domain}\n"
        f"drm_render_minor {minor}\nhive_id 0\nnum_sdma_engines 2\nnum_sdma_xgmi_engines 0\nnum_sdma_queues_per_engine 6\nnum_cp_queues 8\n"
        f"max_engine_clk_fcompute 2482\nlocal_mem_size 0\nfw_version 550\ncapability 671588992\ndebug_prop 1495\nsdma_fw_version 20\n"
        f"unique_id {unique_id}\nnum_xcc 1\nmax_engine_clk_ccompute 4700\n"
    )
    record.files[f"{NODES}/{node}/mem_banks/0/properties"] = f"heap_type {heap}\nsize_in_bytes {memory}\nflags 0\nwidth 384\nmem_clk_max 1249\n"


def pci_card(record: Record, address: str, device: int, vram: int = 0, gtt: int = 0, vendor: int = 0x1002, device_class: int = 0x030000) -> None:
    folder = f"/sys/bus/pci/devices/{address}"
    record.files[f"{folder}/class"] = f"0x{device_class:06x}\n"
    record.files[f"{folder}/vendor"] = f"0x{vendor:04x}\n"
    record.files[f"{folder}/device"] = f"0x{device:04x}\n"
    if vram:
        record.files[f"{folder}/mem_info_vram_total"] = f"{vram}\n"
        record.files[f"{folder}/mem_info_vis_vram_total"] = f"{vram}\n"
        record.files[f"{folder}/mem_info_gtt_total"] = f"{gtt}\n"


def device_files(record: Record, *minors: int, accessible: bool = True, group: str = "render", kfd: bool = True) -> None:
    names = (["/dev/kfd"] if kfd else []) + [f"/dev/dri/renderD{minor}" for minor in minors]
    for name in names:
        record.paths[name] = PathInfo("device", name, group, "0660", accessible, accessible)
    record.paths["/sys/module/amdgpu"] = PathInfo("folder", "/sys/module/amdgpu")


# ------------------------------------------------------------------------------------------------ tools

_ROCMINFO_HEAD = """\
ROCk module is loaded
=====================
HSA System Attributes
=====================
Runtime Version:         1.18
Runtime Ext Version:     1.14
System Timestamp Freq.:  1000.000000MHz
Sig. Max Wait Duration:  18446744073709551615 (0xFFFFFFFFFFFFFFFF) (timestamp count)
Machine Model:           LARGE
System Endianness:       LITTLE
Mwaitx:                  DISABLED
XNACK enabled:           NO
DMAbuf Support:          YES
VMM Support:             YES

==========
HSA Agents
==========
"""
_CPU_AGENT = """\
*******
Agent {number}
*******
  Name:                    AMD Ryzen 9 7950X 16-Core Processor
  Uuid:                    CPU-XX
  Marketing Name:          AMD Ryzen 9 7950X 16-Core Processor
  Vendor Name:             CPU
  Feature:                 None specified
  Profile:                 FULL_PROFILE
  Float Round Mode:        NEAR
  Max Queue Number:        0(0x0)
  Queue Type:              MULTI
  Node:                    0
  Device Type:             CPU
  Cache Info:
    L1:                      32768(0x8000) KB
  Chip ID:                 0(0x0)
  ASIC Revision:           0(0x0)
  Cacheline Size:          64(0x40)
  Max Clock Freq. (MHz):   5881
  BDFID:                   0
  Internal Node ID:        0
  Compute Unit:            32
  SIMDs per CU:            0
  Memory Properties:
  Features:                None
  Pool Info:
    Pool 1
      Segment:                 GLOBAL; FLAGS: FINE GRAINED
      Size:                    65505120(0x3e785e0) KB
      Allocatable:             TRUE
      Alloc Granule:           4KB
      Accessible by all:       TRUE
  ISA Info:
"""
_GPU_AGENT = """\
*******
Agent {number}
*******
  Name:                    {target}
  Uuid:                    {uuid}
  Marketing Name:          {product}
  Vendor Name:             AMD
  Feature:                 KERNEL_DISPATCH
  Profile:                 BASE_PROFILE
  Float Round Mode:        NEAR
  Max Queue Number:        128(0x80)
  Queue Min Size:          64(0x40)
  Queue Max Size:          131072(0x20000)
  Queue Type:              MULTI
  Node:                    {node}
  Device Type:             GPU
  Cache Info:
    L1:                      32(0x20) KB
    L2:                      6144(0x1800) KB
  Chip ID:                 {device}(0x{device:04x})
  ASIC Revision:           0(0x0)
  Cacheline Size:          64(0x40)
  Max Clock Freq. (MHz):   2482
  BDFID:                   {location}
  Internal Node ID:        {node}
  Compute Unit:            {units}
  SIMDs per CU:            2
  Shader Engines:          6
  Shader Arrs. per Eng.:   2
  WatchPts on Addr. Ranges:4
  Coherent Host Access:    FALSE
  Memory Properties:       {properties}
  Features:                KERNEL_DISPATCH
  Fast F16 Operation:      TRUE
  Wavefront Size:          32(0x20)
  Workgroup Max Size:      1024(0x400)
  Workgroup Max Size per Dimension:
    x                        1024(0x400)
    y                        1024(0x400)
    z                        1024(0x400)
  Max Waves Per CU:        32(0x20)
  Grid Max Size:           4294967295(0xffffffff)
  Max fbarriers/Workgrp:   32
  Packet Processor uCode:: 550
  SDMA engine uCode::      20
  IOMMU Support::          None
  Pool Info:
    Pool 1
      Segment:                 GLOBAL; FLAGS: COARSE GRAINED
      Size:                    {kilobytes}(0x{kilobytes:x}) KB
      Allocatable:             TRUE
      Alloc Granule:           4KB
      Alloc Recommended Granule:2048KB
      Accessible by all:       FALSE
    Pool 2
      Segment:                 GROUP
      Size:                    64(0x40) KB
      Allocatable:             FALSE
      Accessible by all:       FALSE
  ISA Info:
{isas}"""
_ISA = """\
    ISA {number}
      Name:                    amdgcn-amd-amdhsa--{isa}
      Machine Models:          HSA_MACHINE_MODEL_LARGE
      Profiles:                HSA_PROFILE_BASE
      Default Rounding Mode:   NEAR
      Fast f16:                TRUE
      Workgroup Max Size:      1024(0x400)
      FBarrier Max Size:       32
"""


def rocminfo_gpu(
    target: str,
    product: str,
    *,
    node: int,
    location: int,
    device: int,
    units: int,
    memory: int,
    isas: tuple[str, ...] = (),
    uuid: str = "GPU-XX",
    properties: str = "",
) -> dict[str, object]:
    return {
        "target": target,
        "product": product,
        "node": node,
        "location": location,
        "device": device,
        "units": units,
        "kilobytes": memory // 1024,
        "isas": "".join(_ISA.format(number=number, isa=isa) for number, isa in enumerate(isas or (target,), 1)),
        "uuid": uuid,
        "properties": properties,
    }


def rocminfo_text(*gpus: dict[str, object]) -> str:
    agents = [_CPU_AGENT.format(number=1)] + [_GPU_AGENT.format(number=number, **gpu) for number, gpu in enumerate(gpus, 2)]
    return _ROCMINFO_HEAD + "".join(agents) + "*** Done ***\n"


def rocminfo(record: Record, *gpus: dict[str, object], path: str = "/opt/rocm/bin/rocminfo") -> None:
    record.programs["rocminfo"] = path
    record.tools[(path,)] = ToolRun(0, rocminfo_text(*gpus))


def amd_smi_text(*gpus: tuple[str, str, str, int, int, int], wrapped: bool = True, warning: str = "") -> str:
    """GPUs as (product, target, PCI address, device id, compute units, MB); `wrapped` as since ROCm 7."""
    entries = [
        {
            "gpu": number,
            "asic": {
                "market_name": product,
                "vendor_id": "0x1002",
                "vendor_name": "Advanced Micro Devices Inc. [AMD/ATI]",
                "subvendor_id": "0x1002",
                "device_id": f"0x{device:04x}",
                "subsystem_id": "0x0e3b",
                "rev_id": "0xc8",
                "asic_serial": f"0x{0x3A7C9B21D0E4F600 + number:016X}",
                "oam_id": "N/A",
                "num_compute_units": units,
                "target_graphics_version": target,
            },
            "bus": {
                "bdf": address,
                "max_pcie_width": 16,
                "max_pcie_speed": {"value": 16, "unit": "GT/s"},
                "pcie_interface_version": "Gen 4",
                "slot_type": "PCIE",
            },
            "vram": {"type": "GDDR6", "vendor": "SAMSUNG", "size": {"value": megabytes, "unit": "MB"}, "bit_width": 384},
        }
        for number, (product, target, address, device, units, megabytes) in enumerate(gpus)
    ]
    return warning + json.dumps({"gpu_data": entries} if wrapped else entries, indent=4) + "\n"


def amd_smi(record: Record, text: str, path: str = "/opt/rocm/bin/amd-smi") -> None:
    record.programs["amd-smi"] = path
    record.tools[(path, "static", "--asic", "--bus", "--vram", "--json")] = ToolRun(0, text)


def hip_info_text(*gpus: tuple[str, str, int, int, str, str]) -> str:
    """GPUs as (product, target, bus, multiprocessors, total, free)."""
    rows = []
    for number, (product, target, bus, units, total, free) in enumerate(gpus):
        values = {
            "Name": product,
            "pciBusID": bus,
            "pciDeviceID": 0,
            "pciDomainID": 0,
            "multiProcessorCount": units,
            "maxThreadsPerMultiProcessor": 2048,
            "isMultiGpuBoard": 0,
            "clockRate": "2482 Mhz",
            "totalGlobalMem": f"{total} GB",
            "sharedMemPerBlock": "64.00 KB",
            "warpSize": 32,
            "isIntegrated": 0,
            "gcnArchName": target,
            "peers": "",
            "non-peers": f"device#{number} ",
        }
        rows.append("-" * 80)
        rows.append(f"{'device#':<34}{number}")
        rows += [f"{key + ':':<34}{value}" for key, value in values.items()]
        rows += ["", f"{'memInfo.total:':<34}{total} GB", f"{'memInfo.free:':<34}{free} GB (99%)"]
    return "\n".join(rows) + "\n"


def hip_query(record: Record, library: str, *devices: tuple[str, str, int]) -> None:
    """Devices as (product, PCI address, bytes)."""
    found = [{"index": index, "name": name, "pci": pci, "free": size - GIB // 4, "total": size} for index, (name, pci, size) in enumerate(devices)]
    record.tools[(HIP_QUERY, library)] = ToolRun(0, json.dumps({"version": 70200000, "devices": found}))


# ------------------------------------------------------------------------------------------------ ROCm folders


def files(record: Record, *names: str) -> None:
    for name in names:
        record.paths[name] = PathInfo("file", name)


def rocm(
    record: Record,
    root: str = "/opt/rocm",
    version: str = "7.2.41134",
    *,
    real: str = "",
    library: str = "lib",
    compiler: str = "lib/llvm/bin/clang++",
    bitcode: str = "amdgcn/bitcode",
    development: bool = True,
    blas_targets: tuple[str, ...] = (),
    opt: bool = True,
) -> None:
    """A ROCm root. Without `development` only what the runtime packages bring."""
    major, minor, patch = version.split(".")
    record.paths[root] = PathInfo("folder", real or root)
    files(record, f"{root}/{library}/libamdhip64.so.{major}", f"{root}/{library}/librocblas.so.4")
    if opt:
        record.files[f"{root}/.info/version"] = f"{major}.{minor}.0-43\n"
    record.files[f"{root}/include/hip/hip_version.h"] = (
        f"#ifndef HIP_VERSION_H\n#define HIP_VERSION_H\n\n#define HIP_VERSION_MAJOR {major}\n#define HIP_VERSION_MINOR {minor}\n#define HIP_VERSION_PATCH {patch}\n"
    )
    files(
        record,
        f"{root}/include/hip/hip_runtime.h",
        f"{root}/bin/hipcc",
        f"{root}/bin/hipconfig",
        f"{root}/{bitcode}/ockl.bc",
        f"{root}/{library}/libamdhip64.so",
    )
    cmake = f"{root}/{library}/cmake"
    files(record, f"{cmake}/hip/hip-config.cmake", f"{cmake}/hip-lang/hip-lang-config.cmake")
    if compiler:
        files(record, f"{root}/{compiler}")
        record.tools[(f"{root}/{compiler}", "--version")] = ToolRun(
            0, f"AMD clang version 22.0.0git (roc-{major}.{minor}.0 25385)\nTarget: x86_64-unknown-linux-gnu\n"
        )
    if development:
        for name in ("hipblas", "rocblas"):
            files(record, f"{root}/include/{name}/{name}.h", f"{cmake}/{name}/{name}-config.cmake")
    for target in blas_targets:
        files(record, f"{root}/{library}/rocblas/library/TensileLibrary_lazy_{target}.dat")


# ------------------------------------------------------------------------------------------------ the machines

XTX = {"location": 768, "device": 0x744C}
XTX_NAME = "AMD Radeon RX 7900 XTX"
XTX_MEMORY = 25753026560


def rx_7900_xtx() -> Record:
    """Arch, every source there, all of one mind."""
    record = machine("arch")
    kfd_cpu(record, 0)
    kfd_gpu(record, 1, 110000, 96, memory=XTX_MEMORY, unique_id=11673270660693242239, **XTX)
    pci_card(record, "0000:03:00.0", 0x744C, vram=XTX_MEMORY, gtt=33 * GIB)
    device_files(record, 128)
    rocm(record, blas_targets=("gfx1030", "gfx1100", "gfx1201"))
    isas = ("gfx1100", "gfx11-generic")
    gpu = rocminfo_gpu("gfx1100", XTX_NAME, node=1, units=96, memory=XTX_MEMORY, isas=isas, uuid="GPU-a1ffc9d1799c317f", **XTX)
    rocminfo(record, gpu)
    amd_smi(record, amd_smi_text((XTX_NAME, "gfx1100", "0000:03:00.0", 0x744C, 96, 24560), warning="WARNING: User is missing permissions\n[deprecated]\n"))
    record.programs["hipInfo"] = "/opt/rocm/bin/hipInfo"
    record.tools[("/opt/rocm/bin/hipInfo",)] = ToolRun(0, hip_info_text((XTX_NAME, "gfx1100", 3, 48, "23.98", "23.84")))
    hip_query(record, "/opt/rocm/lib/libamdhip64.so", (XTX_NAME, "0000:03:00.0", XTX_MEMORY))
    return record


def strix_halo() -> Record:
    """Fedora packages; half a GiB of VRAM carved out, the rest in GTT."""
    record = machine("fedora", memory=124 * GIB)
    kfd_cpu(record, 0)
    kfd_gpu(record, 1, 110501, 40, location=0xC300, device=0x1586, memory=GIB // 2)
    pci_card(record, "0000:c3:00.0", 0x1586, vram=GIB // 2, gtt=120 * GIB)
    device_files(record, 128)
    llvm = "lib64/rocm/llvm/bin/clang++"
    rocm(
        record, "/usr", "7.1.25424", library="lib64", compiler=llvm, bitcode="lib64/rocm/llvm/lib/clang/20/amdgcn/bitcode", opt=False, blas_targets=("gfx1151",)
    )
    isas = ("gfx1151", "gfx11-generic")
    gpu = rocminfo_gpu("gfx1151", "AMD Radeon 8060S", node=1, location=0xC300, device=0x1586, units=40, memory=120 * GIB, isas=isas, properties="APU")
    rocminfo(record, gpu, path="/usr/bin/rocminfo")
    return record


def mi300x_8() -> Record:
    """Ubuntu with AMD's packages; /opt/rocm leads to /opt/rocm-7.2.0."""
    record = machine("ubuntu", memory=2048 * GIB)
    kfd_cpu(record, 0)
    kfd_cpu(record, 1)
    agents, cards = [], []
    for number, bus in enumerate((0x05, 0x27, 0x47, 0x65, 0x85, 0xA7, 0xC7, 0xE5)):
        location, memory = bus << 8, 206141652992
        kfd_gpu(record, 2 + number, 90402, 304, location=location, device=0x74A1, memory=memory, minor=128 + 8 * number, simd_per_cu=4, wave=64)
        pci_card(record, f"0000:{bus:02x}:00.0", 0x74A1, vram=memory, gtt=1000 * GIB, device_class=0x120000)
        isas = ("gfx942:sramecc+:xnack-", "gfx9-4-generic:sramecc+:xnack-")
        agents.append(rocminfo_gpu("gfx942", "AMD Instinct MI300X", node=2 + number, location=location, device=0x74A1, units=304, memory=memory, isas=isas))
        cards.append(("AMD Instinct MI300X", "gfx942", f"0000:{bus:02x}:00.0", 0x74A1, 304, 196592))
    device_files(record, *(128 + 8 * number for number in range(8)))
    rocm(record, "/opt/rocm", "7.2.41134", real="/opt/rocm-7.2.0", blas_targets=("gfx90a", "gfx942", "gfx950"))
    rocm(record, "/opt/rocm-7.2.0", "7.2.41134", blas_targets=("gfx90a", "gfx942", "gfx950"))
    rocminfo(record, *agents)
    amd_smi(record, amd_smi_text(*cards, wrapped=False))
    return record


def mi50() -> Record:
    """Debian packages whose rocBLAS has dropped gfx906."""
    record = machine("debian")
    kfd_cpu(record, 0)
    kfd_gpu(record, 1, 90006, 60, location=0x0300, device=0x66A1, memory=32 * GIB, simd_per_cu=4, wave=64)
    pci_card(record, "0000:03:00.0", 0x66A1, vram=32 * GIB, gtt=31 * GIB)
    device_files(record, 128)
    debian_rocm(record, blas_targets=("gfx90a", "gfx1030", "gfx1100"))
    isas = ("gfx906:sramecc+:xnack-", "gfx9-generic:xnack-")
    gpu = rocminfo_gpu("gfx906", "AMD Radeon Graphics", node=1, location=0x0300, device=0x66A1, units=60, memory=32 * GIB, isas=isas)
    rocminfo(record, gpu, path="/usr/bin/rocminfo")
    return record


def debian_rocm(record: Record, **options) -> None:
    library = "lib/x86_64-linux-gnu"
    rocm(record, "/usr", "6.4.43483", library=library, compiler="", bitcode=f"{library}/amdgcn/bitcode", opt=False, **options)
    for version in (17, 21):
        path = f"/usr/lib/llvm-{version}/bin/clang++"
        files(record, path)
        record.tools[(path, "--version")] = ToolRun(0, f"Debian clang version {version}.1.8 (3)\nTarget: x86_64-pc-linux-gnu\n")


def mi250x() -> Record:
    """openSUSE packages; two dies of one card, each a GPU."""
    record = machine("opensuse")
    kfd_cpu(record, 0)
    agents = []
    for number, bus in enumerate((0xC1, 0xC6)):
        location, memory = bus << 8, 64 * GIB
        kfd_gpu(record, 1 + number, 90010, 110, location=location, device=0x7408, memory=memory, minor=128 + number, simd_per_cu=4, wave=64)
        isas = ("gfx90a:sramecc+:xnack-", "gfx9-generic:sramecc+:xnack-")
        agents.append(rocminfo_gpu("gfx90a", "AMD Instinct MI250X", node=1 + number, location=location, device=0x7408, units=110, memory=memory, isas=isas))
    device_files(record, 128, 129)
    rocm(record, "/usr", "6.4.43483", library="lib64", compiler="lib64/rocm/llvm/bin/clang++", bitcode="lib64/amdgcn/bitcode", opt=False)
    rocminfo(record, *agents, path="/usr/bin/rocminfo")
    return record


def mi355x() -> Record:
    record = machine("ubuntu", memory=1024 * GIB)
    kfd_cpu(record, 0)
    kfd_gpu(record, 1, 90500, 256, location=0x0500, device=0x75A3, memory=288 * GIB, simd_per_cu=4, wave=64, unique_id=4242424242424242)
    device_files(record, 128)
    rocm(record, compiler="llvm/bin/clang++")
    isas = ("gfx950:sramecc+:xnack-", "gfx9-4-generic:sramecc+:xnack-")
    rocminfo(record, rocminfo_gpu("gfx950", "AMD Instinct MI355X", node=1, location=0x0500, device=0x75A3, units=256, memory=288 * GIB, isas=isas))
    return record


def rx_6900_xt_old_rocm() -> Record:
    """HIP older than ggml needs."""
    record = machine("ubuntu")
    kfd_cpu(record, 0)
    kfd_gpu(record, 1, 100300, 80, location=0x0B00, device=0x73AF, memory=16 * GIB)
    device_files(record, 128)
    rocm(record, "/opt/rocm-5.7.1", "5.7.31921", compiler="llvm/bin/clang++")
    return record


def integrated_beside_discrete() -> Record:
    """A Ryzen 7000's small GPU comes first in the kernel's list and in HIP's."""
    record = machine("arch")
    kfd_cpu(record, 0)
    kfd_gpu(record, 1, 100306, 2, location=0x0F00, device=0x164E, memory=GIB // 2, minor=128)
    kfd_gpu(record, 2, 110000, 96, memory=XTX_MEMORY, minor=129, **XTX)
    pci_card(record, "0000:0f:00.0", 0x164E, vram=GIB // 2, gtt=31 * GIB)
    pci_card(record, "0000:03:00.0", 0x744C, vram=XTX_MEMORY, gtt=31 * GIB)
    device_files(record, 128, 129)
    rocm(record)
    small = rocminfo_gpu(
        "gfx1036", "AMD Radeon Graphics", node=1, location=0x0F00, device=0x164E, units=2, memory=31 * GIB, isas=("gfx1036", "gfx10-3-generic")
    )
    rocminfo(record, small, rocminfo_gpu("gfx1100", XTX_NAME, node=2, units=96, memory=XTX_MEMORY, isas=("gfx1100", "gfx11-generic"), **XTX))
    return record


def rx_9070_xt_pip() -> Record:
    """ROCm from Python packages alone."""
    record = machine("fedora")
    kfd_cpu(record, 0)
    kfd_gpu(record, 1, 120001, 64, location=0x0300, device=0x7550, memory=16 * GIB)
    device_files(record, 128)
    site = "~/venv/lib/python3.12/site-packages"
    rocm(record, f"{site}/_rocm_sdk_devel", "7.11.60850", bitcode="lib/llvm/amdgcn/bitcode", opt=False)
    rocm(record, f"{site}/_rocm_sdk_core", "7.11.60850", bitcode="lib/llvm/amdgcn/bitcode", development=False, opt=False)
    return record


def rx_9060_xt_no_permission() -> Record:
    """A card, a ROCm, and a user outside the groups render and video."""
    record = machine("ubuntu")
    kfd_cpu(record, 0)
    kfd_gpu(record, 1, 120000, 32, location=0x0300, device=0x7590, memory=16 * GIB)
    device_files(record, 128, accessible=False)
    record.facts["groups"] = record.facts["groups after login"] = []
    rocm(record)
    record.programs["rocminfo"] = "/opt/rocm/bin/rocminfo"
    text = 'ROCk module is loaded\nUnable to open /dev/kfd read-write: Permission denied\nanna is not member of "render" group\n'
    record.tools[("/opt/rocm/bin/rocminfo",)] = ToolRun(1, text)
    return record


def cpu_agents_only() -> Record:
    """A server with amdgpu's compute topology, ROCm, and no GPU."""
    record = machine("ubuntu")
    kfd_cpu(record, 0)
    kfd_cpu(record, 1)
    pci_card(record, "0000:02:00.0", 0x0536, vendor=0x102B)
    device_files(record)
    rocm(record)
    rocminfo(record)
    return record


def wsl() -> Record:
    """ROCm for WSL: /dev/dxg and rocminfo, no KFD."""
    record = machine("ubuntu")
    record.facts["kernel"] = "6.6.87.2-microsoft-standard-WSL2"
    record.paths["/dev/dxg"] = PathInfo("device", "/dev/dxg", "root", "0666", True, True)
    rocm(record, "/opt/rocm", "6.4.43484", real="/opt/rocm-6.4.2")
    text = rocminfo_text(rocminfo_gpu("gfx1100", XTX_NAME, node=1, units=96, memory=24 * GIB, isas=("gfx1100", "gfx11-generic"), **XTX))
    record.programs["rocminfo"] = "/opt/rocm/bin/rocminfo"
    record.tools[("/opt/rocm/bin/rocminfo",)] = ToolRun(0, text.replace("ROCk module is loaded", "WSL environment detected."))
    return record


def wsl_without_rocm() -> Record:
    record = machine("ubuntu")
    record.paths["/dev/dxg"] = PathInfo("device", "/dev/dxg", "root", "0666", True, True)
    return record


def nothing() -> Record:
    """A laptop with another maker's display."""
    record = machine("debian")
    pci_card(record, "0000:00:02.0", 0x46A6, vendor=0x8086)
    return record


def two_cards() -> Record:
    """Two RX 7900 XTX with unique ids."""
    record = machine("arch")
    kfd_cpu(record, 0)
    kfd_gpu(record, 1, 110000, 96, location=0x0300, device=0x744C, memory=XTX_MEMORY, minor=128, unique_id=0x1111)
    kfd_gpu(record, 2, 110000, 96, location=0x0A00, device=0x744C, memory=XTX_MEMORY, minor=129, unique_id=0x2222)
    device_files(record, 128, 129)
    rocm(record)
    return record


def both_visible_variables() -> Record:
    record = two_cards()
    record.environment.update({"ROCR_VISIBLE_DEVICES": "1", "HIP_VISIBLE_DEVICES": "1"})
    return record


def override_on_mixed_cards() -> Record:
    """An RX 6700 XT made to pass for gfx1030, with an RX 7900 XTX beside it."""
    record = machine("ubuntu")
    kfd_cpu(record, 0)
    kfd_gpu(record, 1, 100301, 40, location=0x0A00, device=0x73DF, memory=12 * GIB, minor=128)
    kfd_gpu(record, 2, 110000, 96, memory=XTX_MEMORY, minor=129, **XTX)
    device_files(record, 128, 129)
    rocm(record)
    record.environment["HSA_OVERRIDE_GFX_VERSION"] = "10.3.0"
    first = rocminfo_gpu("gfx1030", "AMD Radeon RX 6700 XT", node=1, location=0x0A00, device=0x73DF, units=40, memory=12 * GIB)
    rocminfo(record, first, rocminfo_gpu("gfx1030", XTX_NAME, node=2, units=96, memory=XTX_MEMORY, **XTX))
    return record


def several_rocm() -> Record:
    """/opt/rocm-6.2 and /opt/rocm-7.2, and the distribution's older headers in /usr/include."""
    record = rx_7900_xtx()
    record.paths["/opt/rocm"] = PathInfo("folder", "/opt/rocm-7.2.0")
    rocm(record, "/opt/rocm-6.2.4", "6.2.41134", compiler="llvm/bin/clang++")
    rocm(record, "/opt/rocm-7.2.0", "7.2.41134")
    files(record, "/usr/include/hip/hip_runtime.h")
    record.paths["/usr"] = PathInfo("folder", "/usr")
    record.files["/usr/include/hip/hip_version.h"] = "#define HIP_VERSION_MAJOR 5\n#define HIP_VERSION_MINOR 7\n#define HIP_VERSION_PATCH 1\n"
    return record


def runtime_packages_only() -> Record:
    """The libraries of hipBLAS and rocBLAS, but not their development files."""
    record = rx_7900_xtx()
    for path in [path for path in record.paths if "/hipblas/" in path or "/rocblas/rocblas" in path]:
        del record.paths[path]
    return record


def nix() -> Record:
    """One store path per component; the environment names HIP's."""
    record = machine("nixos")
    kfd_cpu(record, 0)
    kfd_gpu(record, 1, 110001, 60, location=0x0300, device=0x747E, memory=16 * GIB)
    device_files(record, 128)
    clr = "/nix/store/0a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p-clr-6.3.3"
    rocm(record, clr, "6.3.42134", compiler="", development=False, opt=False)
    llvm = "/nix/store/1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6q-rocm-llvm-clang-wrapper-6.3.3/bin/clang++"
    files(record, llvm)
    record.tools[(llvm, "--version")] = ToolRun(0, "clang version 18.0.0git\n")
    for name in ("hipblas", "rocblas"):
        store = f"/nix/store/2c3d4e5f6g7h8i9j0k1l2m3n4o5p6q7r-{name}-6.3.3"
        files(record, f"{store}/include/{name}/{name}.h", f"{store}/lib/cmake/{name}/{name}-config.cmake")
    return record


def masked_container() -> Record:
    """A container without the host's GPUs: their nodes exist but cannot be read."""
    record = machine("ubuntu")
    kfd_cpu(record, 0)
    for node in (1, 2):
        record.paths[f"{NODES}/{node}"] = PathInfo("folder", f"{NODES}/{node}")
    record.paths["/.dockerenv"] = PathInfo("file", "/.dockerenv")
    return record


def driver_missing() -> Record:
    record = machine("fedora")
    pci_card(record, "0000:03:00.0", 0x744C)
    return record


def renoir() -> Record:
    """gfx90c: a GCN APU, no kernels for it."""
    record = machine("debian")
    kfd_cpu(record, 0)
    kfd_gpu(record, 1, 90012, 8, location=0x0400, device=0x1636, memory=2 * GIB, simd_per_cu=4, wave=64)
    pci_card(record, "0000:04:00.0", 0x1636, vram=2 * GIB, gtt=15 * GIB)
    device_files(record, 128)
    return record


def nothing_to_build_with() -> Record:
    """A card that may not be opened, no ROCm, no compiler."""
    record = without(rx_9060_xt_no_permission(), "c++", "g++")
    for path in [path for path in (*record.paths, *record.files) if path.startswith("/opt/rocm")]:
        record.paths.pop(path, None)
        record.files.pop(path, None)
    return record


# Machine -> (exit code, targets, names of the findings above a note).
EXPECTED = {
    rx_7900_xtx: (0, ["gfx1100"], []),
    strix_halo: (0, ["gfx1151"], []),
    mi300x_8: (0, ["gfx942"], []),
    mi50: (1, ["gfx906"], ["rocblas-without-target"]),
    mi250x: (0, ["gfx90a"], []),
    mi355x: (0, ["gfx950"], []),
    rx_6900_xt_old_rocm: (3, ["gfx1030"], ["hip-too-old"]),
    integrated_beside_discrete: (0, ["gfx1100"], []),
    rx_9070_xt_pip: (0, ["gfx1201"], []),
    rx_9060_xt_no_permission: (4, ["gfx1200"], ["permission-denied"]),
    cpu_agents_only: (0, ["host"], []),
    wsl: (0, ["gfx1100"], []),
    wsl_without_rocm: (0, ["host"], []),
    nothing: (0, ["host"], []),
    two_cards: (0, ["gfx1100"], []),
    both_visible_variables: (4, ["gfx1100"], ["visible-devices-both", "all-gpus-hidden"]),
    override_on_mixed_cards: (1, ["gfx1030"], ["override-mixed"]),
    several_rocm: (1, ["gfx1100"], ["shadowing-headers"]),
    runtime_packages_only: (3, ["gfx1100"], ["rocm-incomplete"]),
    nix: (0, ["gfx1101"], []),
    masked_container: (4, ["host"], ["no-gpu-granted"]),
    driver_missing: (4, ["host"], ["driver-missing"]),
    renoir: (0, ["host"], []),
    nothing_to_build_with: (3, ["gfx1200"], ["permission-denied", "rocm-missing", "compiler-missing"]),
}
MACHINES = {function.__name__: function for function in EXPECTED}
