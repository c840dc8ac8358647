"""Kernels as code objects: what the sources define, how they are compiled, and the manifest that describes the result."""
