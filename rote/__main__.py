"""`python -m rote` is the command line `rote`."""

from __future__ import annotations

from .cli import main

if __name__ == "__main__":
    main()
