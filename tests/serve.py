"""The ranks of a `launch.Job`: run under mpiexec, they do one program after the other, as each would run alone.

Usage: python serve.py FOLDER RANKS, where FOLDER holds a pipe per rank, by which requests come, and one for all, by
which each rank says how a program ended. Ranks that wait for a request sleep.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import copy_context
from pathlib import Path

from rote.runtime import world


@contextmanager
def alone(request: dict[str, object], out: Path, err: Path) -> Iterator[None]:
    """The folder, arguments, environment, warnings and output of a process that runs nothing but this program."""
    path, environment, streams = list(sys.path), dict(os.environ), [os.dup(1), os.dup(2)]
    folder, args = str(request["folder"]), [str(request["program"]), *map(str, request["args"])]  # type: ignore[call-overload]
    for number, file in ((1, out), (2, err)):
        opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC)
        os.dup2(opened, number)
        os.close(opened)  # or each program would leave two open files
    os.chdir(folder)
    os.environ.update(request["env"])  # type: ignore[call-overload]
    sys.argv[:], sys.path[:0] = args, [str(Path(args[0]).parent)]
    try:
        with warnings.catch_warnings():
            yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, stream in zip((1, 2), streams, strict=True):
            os.dup2(stream, number)
            os.close(stream)
        os.environ.clear()
        os.environ.update(environment)
        sys.path[:] = path
        gc.collect()
        gc.freeze()  # what has stayed, modules and caches, is not looked at again after the next program


def run(program: str) -> bool:
    """Run a program, whose settings are no other program's; whether it ended as it should."""
    try:
        copy_context().run(runpy.run_path, program, run_name="__main__")
    except SystemExit as end:
        return not end.code
    except BaseException:
        traceback.print_exc()
        return False
    return True


def main(folder: Path) -> None:
    rank = world().rank
    with open(folder / f"{rank}", encoding="utf-8") as requests, open(folder / "ended", "wb", buffering=0) as ended:
        for line in requests:
            request = json.loads(line)
            here = Path(request["folder"])
            with alone(request, here.with_suffix(f".out.{rank}"), here.with_suffix(f".err.{rank}")):
                right = run(request["program"])
            ended.write(b"+" if right else b"-")  # one byte: never mixed with another rank's


if __name__ == "__main__":
    main(Path(sys.argv[1]))
