"""What `pyproject.toml` cannot say: the README as the package index shows it, with whole addresses in its links.

In the repository README's links are relative, so that they lead to files of the same commit. The index has no files:
there they lead to those of the tag of the version.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).parent


def absolute(page: str, repository: str, version: str) -> str:
    """The page with its relative links and pictures made absolute; addresses, anchors and code stay."""
    code = r"(?P<code>```.*?```|`[^`\n]*`)"  # matched first, so that f(a)[0](1) is no link
    link = r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?!#|\w+:)(?P<target>[^)\s]+)\)"

    def whole(match: re.Match[str]) -> str:
        if match["code"]:
            return match["code"]
        kind = "raw" if match["picture"] else "blob"
        return f"{match['picture']}[{match['text']}]({repository}/{kind}/v{version}/{match['target']})"

    return re.sub(f"{code}|{link}", whole, page, flags=re.DOTALL)


if __name__ == "__main__":
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"]
    version = re.findall(r'VERSION = "(.+)"', (ROOT / "rote" / "version.py").read_text("utf-8"))[0]
    readme = absolute((ROOT / "README.md").read_text("utf-8"), urls["Repository"], version)
    setup(long_description=readme, long_description_content_type="text/markdown")
