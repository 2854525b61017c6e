"""Sums of products over modes: subscripts read, layouts of their labels chosen, and the blocks contracted."""
