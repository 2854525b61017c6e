"""Messages in chunks between the steps of transforms: the same bits and bytes, in between, and chosen where it pays."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import rote
from rote.errors import CommError
from rote.fft import FFT

PROGRAM = Path(__file__).with_name("pipelined.py")


@pytest.mark.mpi
@pytest.mark.parametrize("number, job", [(5, 3), pytest.param(25, 4, marks=pytest.mark.slow)], indirect=["job"])
def test_chunks_are_the_messages_in_parts(job, number):
    """Laws: chunks give the bits and bytes of whole messages, real numbers send half, what is cut off never travels;
    work goes on between messages; memory is what is said; and the model chooses."""
    done = job.run(PROGRAM, number, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    peers = job.ranks - 1
    for found in json.loads(done.stdout):
        assert found["chunked"] >= number
        messages = found["messages"]
        whole, half = messages["isend c16"], messages["isend f8"]
        assert whole[0] == half[0] == peers
        assert messages["pipelined c16"] == [4 * peers, whole[1]]
        assert messages["pipelined f8"] == [4 * peers, half[1]]
        assert half[1] * 64 == whole[1] * 33  # of 64 complex numbers 33
        assert messages["cut"][1] * 4 <= whole[1] * 1.2
        assert min(found["overlap"].values()) > 0
        # chunks of the first half leave as they are made, the others at once; later work follows each that it needs
        assert re.fullmatch(r"R(w+c+S)+(c+S)+F+(w+F)*w+F", found["order"]), found["order"]
        assert found["workspace"]
        assert found["choice"] == ["alltoallv", "pipelined", "alltoallv"]


def test_threads_have_no_such_messages():
    """Ranks of one process are told so, on all of them."""

    def program(comm):
        FFT((4, 4), "block[(0),()]", comm=comm, method="pipelined")

    with pytest.raises(CommError, match="pipelined is a method of MPI's"):
        rote.run(program, 2)
