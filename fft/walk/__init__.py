"""Walks: a parallel transform as layouts and what is transformed in each, their check, and their price."""
