"""Timing: one loop that times candidates, by how much one must lead, and what is decided and measured by it."""
