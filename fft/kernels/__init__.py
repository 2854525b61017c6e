"""Local transforms: what a rank does with its own block.

A `kernel` is a transform of a block along some axes. `backends` are the libraries that transform arrays; `passes` take
a block through their transforms, tile by tile where its strides are unfavourable, `gather` reads it out of the blocks
of other ranks meanwhile, and `threads` share it. `choose` finds the config that is fastest on this machine.
"""
