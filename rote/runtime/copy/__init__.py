"""Copies between blocks and messages, derived from the runs of index sets."""
