"""Parallel files: all ranks read and write one file together, each rank its own part."""
