"""The addresses of Rote: `pyproject.toml` has them, the files below repeat them, and a release needs real ones.

python .ci/addresses.py                      print them; fail while one of them is a placeholder
python .ci/addresses.py Repository=ADDRESS   change one everywhere; also Documentation, Issues, Authors
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACEHOLDER = "example.org"
FILES = (
    ".github/ISSUE_TEMPLATE/config.yml",
    ".github/SUPPORT.md",
    "CITATION.cff",
    "CODE_OF_CONDUCT.md",
    "README.md",
    "SECURITY.md",
    "notebooks/install.md",
    "paper/paper.md",
    "pyproject.toml",
    "recipe/recipe.yaml",
)


def addresses(root: Path = ROOT) -> dict[str, str]:
    """The addresses by name: those of `[project.urls]`, and the authors' for mail."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    return {**project["urls"], "Authors": project["authors"][0]["email"]}


def change(name: str, address: str, root: Path = ROOT) -> None:
    """Write another address wherever the present one stands, as a whole."""
    present = addresses(root)[name]
    whole = re.compile(re.escape(present) + r"(?![\w-])")

    for path in (root / file for file in FILES):
        path.write_text(whole.sub(lambda match: address, path.read_text("utf-8")), "utf-8")


def main(*changes: str) -> None:
    """Change what is asked for, or print and check what there is."""
    for name, _, address in (entry.partition("=") for entry in changes):
        change(name, address)

    for name, address in addresses().items():
        print(f"{name:14} {address}")

    undecided = [name for name, address in addresses().items() if PLACEHOLDER in address]
    if undecided and not changes:
        sys.exit(f"not decided: {', '.join(undecided)}\nwrite python .ci/addresses.py {undecided[0]}=ADDRESS")


if __name__ == "__main__":
    main(*sys.argv[1:])
