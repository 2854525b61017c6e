"""Modes reduced, or scanned, by contributions of ranks: sums, exact ones, extrema, statistics, running totals."""
