"""Benchmarks: Rote, the libraries that do the same, and the best that one process can do, in turn, round after round.

What `rote bench` runs. The contestants' packages are imported when their turn comes; one that is not there is reported
with the reason. FFTW's MPI transforms need a C program, which is compiled when their turn comes.
"""
