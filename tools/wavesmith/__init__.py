"""wavesmith: GPU kernels for llama.cpp on AMD GPUs, and the tool that builds, checks and measures llama.cpp with them."""

__version__ = "0.1.0"
