"""The kernels' real machine code on an AMDGPU ISA emulator: cases, the recorded evidence, counts, and the tables made from them.

The emulator is an AMDGPU ISA emulator driving tinygrad's mock GPU; it is not part of this repository. WAVESMITH_EMULATOR is the folder
that holds its run_co.py, TINYGRAD a source tree of tinygrad. Everything that only reads the evidence works without them.
"""
