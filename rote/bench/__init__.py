"""Benchmarks of `rote bench`: Rote, similar libraries, and the best of one process, in turn, round after round.

The contestants' packages are imported when their turn comes; a missing one is reported with the reason. FFTW's MPI
transforms need a C program, which is also compiled when their turn comes.
"""
