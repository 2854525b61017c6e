"""Machines: the times of ranks, of memory and of networks, from which seconds are computed; and machines as data."""
