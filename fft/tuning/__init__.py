"""Tuning by measurement: the walk that is fastest on these ranks, and whether the tuned transform is faster."""
