"""The notebooks run from top to bottom, as their readers would run them.

`python tests/house/test_house_notebooks.py` runs all, or those that are named, and stores what they print anew.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from house import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


# In a Python of its own: the sockets and the event loop of a kernel's client would outlive the test.
RUNNER = """
import sys
import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

path, kernels = sys.argv[1:]
specs = KernelSpecManager(kernel_dirs=[kernels])
manager = AsyncKernelManager(kernel_name="python3", kernel_spec_manager=specs)
notebook = nbformat.read(path, as_version=4)
try:
    NotebookClient(notebook, km=manager, timeout=120).execute()
finally:
    nbformat.write(notebook, "run.ipynb")
"""


def execute(path: Path, folder: Path) -> str:
    """Run every cell of a notebook in `folder`, with this very Python; the last error, empty when all is well.

    What it printed is then in run.ipynb, in the same folder.
    """
    # The kernel that belongs to this Python, not one that the user's account has under the same name.
    kernels = str(Path(sys.prefix) / "share" / "jupyter" / "kernels")
    settings = {name: str(folder / "home") for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR")}
    done = subprocess.run(
        [sys.executable, "-c", RUNNER, str(path), kernels],
        cwd=folder,
        env=os.environ | settings,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.stderr[-4000:] if done.returncode else ""


def stored(path: Path) -> dict[str, Any]:
    """A notebook as its file has it."""
    content: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return content


def printed(path: Path) -> list[str]:
    """What each cell of a notebook's file has printed."""
    outputs = [cell.get("outputs", ()) for cell in stored(path)["cells"]]
    return ["".join("".join(output.get("text", ())) for output in those) for those in outputs]


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=pytest.mark.slow) for path in NOTEBOOKS],
    ids=lambda path: path.name,
)
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    """No cell raises, and each prints what the file says."""
    error = execute(path, tmp_path)
    assert not error, error
    assert printed(tmp_path / "run.ipynb") == printed(path)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [3, 8])
def test_the_five_ways_run_on_other_numbers_of_ranks(ranks: int, tmp_path: Path) -> None:
    """A reader changes the number of ranks: the ways that such ranks have are gone, and of the others it is said."""
    (path,) = (path for path in NOTEBOOKS if path.name == "4-five-ways.ipynb")
    text = path.read_text("utf-8")
    assert text.count("RANKS = (16, 16, 16), 16") == 1
    changed = tmp_path / path.name
    changed.write_text(text.replace("RANKS = (16, 16, 16), 16", f"RANKS = (16, 16, 16), {ranks}"), "utf-8")
    error = execute(changed, tmp_path)
    assert not error, error
    output = "".join(printed(tmp_path / "run.ipynb"))
    assert "WRONG" not in output
    assert ("no pencil walk of 3 ranks on a grid of order 2" in output) == (ranks == 3)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_is_stored_clean(path: Path) -> None:
    """No stored output is an error, and none names a folder of the machine that made it."""
    outputs = [output for cell in stored(path)["cells"] for output in cell.get("outputs", ())]
    assert [output for output in outputs if output["output_type"] == "error"] == []
    text = json.dumps(outputs)
    assert not any(folder in text for folder in (str(Path.home()) + "/", str(ROOT) + "/", "/tmp/"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_picture_says_what_it_shows(path: Path) -> None:
    """Those who do not see a picture hear its text, which is in the metadata of its cell, as myst-nb reads it."""
    drawn = [cell for cell in stored(path)["cells"] if "image/png" in json.dumps(cell.get("outputs", []))]
    assert drawn
    for cell in drawn:
        assert len(cell["metadata"]["mystnb"]["image"]["alt"]) > 20


def store(path: Path) -> None:
    """Run a notebook, and keep what those of its cells print that print something else than the file says."""
    with tempfile.TemporaryDirectory() as folder:
        error = execute(path.resolve(), Path(folder))
        if error:
            raise SystemExit(error)
        content, run = stored(path), stored(Path(folder) / "run.ipynb")
        texts = zip(printed(path), printed(Path(folder) / "run.ipynb"), strict=True)
    for cell, now, (old, new) in zip(content["cells"], run["cells"], texts, strict=True):
        if old != new:
            outputs = [output for output in now["outputs"] if output["output_type"] != "stream"]
            text = new.splitlines(keepends=True)  # as one output, however it arrived
            cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": text}, *outputs]
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:] or NOTEBOOKS):
        print(path)
        store(path)
