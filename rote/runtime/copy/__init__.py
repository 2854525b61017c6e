"""Copies between blocks and messages, from the runs that index sets know."""
