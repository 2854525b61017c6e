"""Requests: what a user asks of a transform, checked and completed, before any walk is looked for."""
