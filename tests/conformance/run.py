"""Run the array API conformance suite on Rote: every test on several numbers of ranks, with layouts that split.

    python tests/conformance/run.py FOLDER [--ranks 1 2 4] [--layouts block cyclic grid] [pytest options]

FOLDER holds `data-apis/array-api-tests`, which is not on PyPI: clone it with its submodules. The suite knows one thread
and one module; `lockstep.py` gives it one that all ranks run in step, and checks that they agree. What comes out is a
table in Markdown: how many examples each test had, how many tests passed, and each that failed, on how many ranks, and
why, by `reasons.txt`. The exit status is 1 if a test failed for which there is no reason, or if a reason's tests have
all passed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

HERE = Path(__file__).parent


class Outcome(NamedTuple):
    """What came of one test of the suite in one run; `why` is empty unless it failed."""

    test: str
    kind: str
    why: str


def run_suite(
    folder: Path, ranks: int, layout: str, options: list[str], module: str = "rote.array_api"
) -> list[Outcome]:
    """Run the suite on one number of ranks; what came of every test.

    Raises:
        RuntimeError: pytest did not run the tests, or none were there.
    """
    environment = {
        **os.environ,
        "ARRAY_API_TESTS_MODULE": "lockstep",
        "ROTE_CONFORMANCE_MODULE": module,
        "ROTE_CONFORMANCE_RANKS": str(ranks),
        "ROTE_CONFORMANCE_LAYOUT": layout,
        "PYTHONPATH": os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }
    with tempfile.TemporaryDirectory() as scratch:
        results = Path(scratch, "results.xml")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={results}", *options]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        outcomes = read_results(results) if results.exists() else []
    if done.returncode not in (0, 1) or not outcomes:
        raise RuntimeError(f"the suite did not run: {' '.join(command)}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return outcomes


def read_results(path: Path) -> list[Outcome]:
    """What pytest's XML says of every test."""
    return [_outcome(case) for case in ElementTree.parse(path).getroot().iter("testcase")]


def _outcome(case: ElementTree.Element) -> Outcome:
    test = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
    for kind in ("failure", "error", "skipped"):
        element = case.find(kind)
        if element is not None:
            why = "; ".join(line.strip() for line in (element.get("message") or "").splitlines()[:3])
            return Outcome(test, "skipped" if kind == "skipped" else "failed", why[:200])
    return Outcome(test, "passed", "")


def read_reasons(path: Path) -> dict[str, str]:
    """Reasons for failures that are known: lines `pattern = reason`, where a pattern is as in a shell."""
    lines = [line for line in path.read_text("utf-8").splitlines() if line.strip() and not line.startswith("#")]
    return {pattern.strip(): reason.strip() for pattern, _, reason in (line.partition(" = ") for line in lines)}


def reason_of(test: str, reasons: dict[str, str]) -> str:
    """The reason of the first pattern that fits; none is the empty text."""
    # A test's own brackets are no pattern.
    return next((why for pattern, why in reasons.items() if fnmatchcase(test, pattern.replace("[", "[[]"))), "")


def table(runs: dict[tuple[int, str], list[Outcome]], reasons: dict[str, str]) -> tuple[str, bool]:
    """The runs in Markdown, and whether all is as the reasons say."""
    lines = ["| ranks | layout | passed | skipped | failed for a reason | failed |", "|---|---|---|---|---|---|"]
    failed: dict[str, dict[tuple[int, str], str]] = defaultdict(dict)
    for (ranks, layout), outcomes in runs.items():
        bad = [outcome for outcome in outcomes if outcome.kind == "failed"]
        known = sum(bool(reason_of(outcome.test, reasons)) for outcome in bad)
        passed, skipped = (sum(outcome.kind == kind for outcome in outcomes) for kind in ("passed", "skipped"))
        lines.append(f"| {ranks} | {layout} | {passed} | {skipped} | {known} | {len(bad) - known} |")
        for outcome in bad:
            failed[outcome.test][ranks, layout] = outcome.why
    lines += ["", "| test | fails on | why |", "|---|---|---|"]
    for test, wheres in sorted(failed.items(), key=lambda row: (bool(reason_of(row[0], reasons)), row[0])):
        on = "all" if len(wheres) == len(runs) else ", ".join(f"{ranks} {layout}" for ranks, layout in wheres)
        why = reason_of(test, reasons) or f"`{next(iter(wheres.values()))}`"
        lines.append("| " + " | ".join(text.replace("|", "\\|") for text in (f"`{test}`", on, why)) + " |")
    stale = [pattern for pattern in reasons if not any(reason_of(test, {pattern: "fits"}) for test in failed)]
    lines += [f"\nno test fails any more by the reason of `{pattern}`" for pattern in stale]
    return "\n".join(lines), not stale and all(reason_of(test, reasons) for test in failed)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="data-apis/array-api-tests")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--layouts", nargs="+", default=["block", "cyclic", "grid"])
    parser.add_argument("--max-examples", type=int, default=100)
    parser.add_argument("--module", default="rote.array_api", help="the namespace under test")
    parser.add_argument("--reasons", type=Path, default=HERE / "reasons.txt")
    chosen, options = parser.parse_known_args(arguments)
    options = [f"--max-examples={chosen.max_examples}", *options]
    # One rank has everything whichever way it lies: one layout is enough.
    wanted = [(n, layout) for n in chosen.ranks for layout in (chosen.layouts if n > 1 else chosen.layouts[:1])]
    runs = {(n, layout): run_suite(chosen.folder, n, layout, options, chosen.module) for n, layout in wanted}
    text, good = table(runs, read_reasons(chosen.reasons))
    print(f"{chosen.max_examples} examples a test\n\n{text}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
