"""Requests: what a user asks of a transform, checked and completed, before the search for a walk."""
