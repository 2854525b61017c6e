"""Solvers of matrices that are split, by ScaLAPACK on MPI ranks; `.ci/run engines` runs these with the extra `fast`."""

from __future__ import annotations

from pathlib import Path

import matrices
import pytest
from launch import Job
from marks import make_checks, mpi_parts

from rote.host import mkl_files

PROGRAM = Path(__file__).with_name("matrices.py")
