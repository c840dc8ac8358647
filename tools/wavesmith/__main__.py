"""Entry of the console script and of `python -m wavesmith`."""

from __future__ import annotations

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
