"""FFTW's plan interface: transforms of this rank's arrays by Rote, planned immediately from a cost model."""

from __future__ import annotations

from . import factory as factory
from . import utilities as utilities
from . import xfftn as xfftn
from .factory import *  # noqa: F403 - as in mpi4py-fft, this package has the names of its modules
from .utilities import *  # noqa: F403
from .xfftn import *  # noqa: F403
