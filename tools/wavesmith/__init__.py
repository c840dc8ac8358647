"""wavesmith: GPU kernels for llama.cpp on AMD GPUs, and the tool that builds, checks and measures llama.cpp with them."""

__version__ = "0.1.0"


def __getattr__(name: str):
    """`wavesmith.ops` without an import of its own, and without loading it for those who do not use it."""
    if name == "ops":
        import importlib

        return importlib.import_module(".ops", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
