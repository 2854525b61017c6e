"""Families of walks, and the choice among them."""
