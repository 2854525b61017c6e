"""The first plan and the first call: what they import, and how many functions they pass, where wisdom is kept, too."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import rote
from rote import functions, wisdom

PROGRAM = """
import json
import sys
from effort import passed
import numpy as np
import rote

def modules():
    return {name for name in sys.modules if name.partition(".")[0] == "rote"}

counts = {"import rote": len(modules())}
from rote.fft import FFT

counts["import FFT"] = len(modules())
# Whichever library is fastest or usual on this machine, it takes no other.
sys.modules["rote.fft.kernels.choose"].timed_libraries = lambda: ("pyfftw",)
sys.modules["rote.fft.kernels.backends"].processor = str
plans = []
counts["functions of a plan"] = len(passed(lambda: plans.append(FFT((64, 64, 64), dtype="f8"))))
f = plans[0]
x, X = f.empty_input(), f.empty_output()
x.local[...] = np.sqrt(np.arange(x.size)).reshape(x.shape) % 1
counts["functions of a transform"] = len(passed(lambda: f.forward(x, out=X)))
counts["modules"] = len(modules())
others = ("email", "importlib.metadata", "numpy.ma", "numpy.fft", "secrets", "difflib", "rote.fft.functions.dispatch")
counts["others"] = [name for name in others if name in sys.modules]
base = {f"rote.functions.{name}" for name in ("rules", "distributed", "moves")}
counts["functions"] = [name for name in modules() - base if name.startswith("rote.functions.")]
assert np.allclose(X.to_global(), np.fft.rfftn(x.local))

# What was not imported is there when it is asked for.
assert np.allclose(np.fft.rfftn(x).to_global(), X.to_global()) and "rote.fft.functions.dispatch" in sys.modules
y = x[:2, :3, 0]
assert y.sum() == rote.DistTensor.sum(y) and np.array_equal((y + 1).T.to_global(), y.local.T + 1)
assert {"facts", "sorting"} <= {*dir(rote.functions)} and {"sum", "trace", "sort"} <= {*dir(rote.DistTensor)}
print(json.dumps(counts))
"""

MOST = {
    "import rote": 3,
    "import FFT": 161,
    "functions of a plan": 10_700,
    "functions of a transform": 2_200,
    "modules": 162,
    "others": [],
    "functions": [],
}


def test_a_first_transform_imports_no_more_modules_and_calls_no_more_functions_than_it_should(tmp_path: Path) -> None:
    """Law: `import rote` is three modules; a plan and its first call, few, and none of them for versions or for arrays.

    Another program has had lines of that length before, so that they need not be timed.
    """
    env = {**os.environ, "ROTE_WISDOM": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[1])}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROTE_WISDOM", str(tmp_path))
        assert wisdom.remember(wisdom.key({"what": "nothing"}), 0)
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    print(counts)
    assert {name: count for name, count in counts.items() if count > MOST[name]} == {}


def test_methods_that_are_functions_are_these_functions() -> None:
    """Law: a method that comes with its module is the function of that module, of the class and of a tensor."""
    assert rote.DistTensor.sum is functions.reductions.sum
    assert rote.DistTensor.diagonal is functions.matrices.numpy_diagonal
    x = rote.DistTensor.from_global(np.arange(6.0).reshape(2, 3), "block[(0),()]")
    assert (x.sum(), x.argmax(), x.mean()) == (15, 5, 2.5)
    with pytest.raises(AttributeError, match="no attribute 'missing'"):
        functions.missing  # noqa: B018
