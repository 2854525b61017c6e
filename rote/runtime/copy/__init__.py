"""Copies between blocks and messages.

`regions` says which part of a block goes into which message, or straight into the next block, and cuts messages into
parts. `strided` copies, multiplies or reduces the pieces of a region. `tiled` does so in parts that stay in the cache,
where a plain copy would fetch cache lines several times.
"""
