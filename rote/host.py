"""The host of a process: its processor, and the installed packages."""

from __future__ import annotations

import os
import platform
import sys
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from .caches import memoized

__all__ = ["installed", "processor"]


@cache
def processor() -> str:
    """The model of the processor, as far as the system reports it.

    >>> processor() != ""
    True
    """
    fields: dict[str, str] = {}
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").partition("\n\n")[0].splitlines()
        fields = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    names = [fields[name] for name in ("model name", "CPU implementer", "CPU part") if fields.get(name)]
    return " ".join(names) or platform.processor() or platform.machine()


@memoized(64)
def installed(package: str) -> str:
    """The version of an installed package, from the name of its folder (PEP 376) if possible; "" if not installed.

    >>> installed("numpy") > "1", installed("no-such-package")
    (True, '')
    """
    start, end = f"{package}-", ".dist-info"
    for place in sys.path:
        with suppress(OSError):
            names = [name for name in os.listdir(place or ".") if name.endswith(end) and name.lower().startswith(start)]
            if len(names) == 1:
                return names[0][len(start) : -len(end)]
    if find_spec(package) is None:
        return ""
    from importlib import metadata  # late, because it imports the e-mail parser

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
