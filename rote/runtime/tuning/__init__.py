"""Timing: the loop that times candidates, the lead that decides, and the decisions and measurements made by it."""
