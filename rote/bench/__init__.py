"""Benchmarks: Rote, the libraries that do the same, and the best that one process can do, in turn, round after round.

What `rote bench` runs. The contestants' packages are imported when their turn comes; one that is not there is reported
with the reason. Two need a program of their own, which lies beside the tests in a checkout.
"""
