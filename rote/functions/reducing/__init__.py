"""Reductions and scans of modes, by contributions of ranks: sums, exact sums, extrema, statistics, running totals."""
