"""Contractions: planned, proved and run as moves and products of what is local."""
