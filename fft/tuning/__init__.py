"""Transforms by measurement: the walk that is fastest on these ranks, and whether all that was tuned leads."""
