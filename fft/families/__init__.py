"""Families of walks, and the choice among them.

A family makes the lines of a walk for a request, from the distribution of a tensor: `transpose` those that transform
whole axes, `cyclic` and `ragged` those that transform digits of axes. `registry` is the table of families. `choose`
builds and prices the walks of all of them, and says which one "auto" takes.
"""
