"""The meaning of layouts: which rank holds which elements. No processes, no communication.

`kinds.py` says how one entry deals out the indices of a mode; `indexset.py` holds such indices, and `view.py` reads a
tensor's modes as others. A `Layout` (`layout.py`; as an expression, `expressions.py`) is a choice of entries, without
sizes; with a shape and a grid (`grid.py`) it is a `Distribution` (`distribution.py`). Other files start from blocks:
`slices.py` finds the layout that has them. `foreign.py` reads and writes the formats of other libraries, and
`refine.py` rewrites a distribution.
"""
