"""Sorting and searching, unique elements and their counts, medians and quantiles."""
