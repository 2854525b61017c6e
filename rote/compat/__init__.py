"""Interfaces of other packages, implemented with Rote's public names."""
