"""The host of a process: its processor, its memory, and the installed packages."""

from __future__ import annotations

import os
import platform
import sys
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from .caches import memoized

__all__ = ["installed", "memory", "processor"]


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


def memory(groups: str = "/proc/self/cgroup", mounted: str = "/sys/fs/cgroup") -> int:
    """Bytes of memory that this host has, or that this process's control group may use if that is less.

    Args:
        groups: the file that names the groups of this process, of version 1 or 2.
        mounted: the folder in which the system shows them; a limit of an outer group holds for the inner ones.

    >>> memory() > 1 << 20
    True
    """
    least = sys.maxsize  # where the system does not say
    with suppress(AttributeError, OSError, ValueError):
        least = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):
        for line in Path(groups).read_text("utf-8", "replace").splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and "memory" not in controllers.split(","):
                continue
            top, name = (
                (Path(mounted, "memory"), "memory.limit_in_bytes") if controllers else (Path(mounted), "memory.max")
            )
            group = top / path.lstrip("/")
            for folder in (group, *group.parents):
                if not folder.is_relative_to(top):
                    break
                with suppress(OSError, ValueError):  # "max" is no number
                    least = min(least, int((folder / name).read_text()))
    return least


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
