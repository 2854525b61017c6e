"""Parallel files: all ranks read and write one file at once, each rank its own part."""
