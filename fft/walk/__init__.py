"""Walks: parallel transforms as layouts with transforms between moves, their type check, and their price."""
