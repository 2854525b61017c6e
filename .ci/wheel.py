"""The wheel is rote-tensor's, and holds every file of the three packages, all data among them, no others.

Usage: python .ci/wheel.py CHECKOUT WHEEL
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

PACKAGES = {"rote": "rote", "grammar": "rote/grammar", "fft": "rote/fft"}


def expected(checkout: Path) -> set[str]:
    """The names that the wheel must have, from the files of the checkout."""
    return {
        f"{inside}/{path.relative_to(checkout / folder).as_posix()}"
        for folder, inside in PACKAGES.items()
        for pattern in ("*.py", "*.lark", "*.c", "*.html", "*.css", "*.js", "*.toml", "py.typed")
        for path in (checkout / folder).rglob(pattern)
    }


def main(checkout: str, wheel: str) -> None:
    """Compare, and say what differs."""
    if not Path(wheel).name.startswith("rote_tensor-"):
        sys.exit(f"{Path(wheel).name} is no wheel of rote-tensor")
    with zipfile.ZipFile(wheel) as archive:
        found = {name for name in archive.namelist() if ".dist-info/" not in name}
    wanted = expected(Path(checkout))
    if not {"rote/py.typed", "rote/grammar/layout.lark", "rote/fft/__init__.py"} <= wanted:
        sys.exit("the checkout lacks the grammar, the type marker or the FFTs")
    if found != wanted:
        sys.exit(f"missing from the wheel: {sorted(wanted - found)}\nin the wheel by mistake: {sorted(found - wanted)}")
    print(f"{Path(wheel).name}: {len(found)} files, as in the checkout")


if __name__ == "__main__":
    main(*sys.argv[1:])
