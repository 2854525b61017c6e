"""One movement of a tensor from one distribution to another: what every rank sends to whom, and how much that is.

Read `components` first: it divides a transition into components, and finds the lattices of elements that both sides of
a component have in common. `messages` takes the elements of one rank from them, by peer. `volumes` counts elements and
messages for all ranks at once, without making any message. `along` counts for one long grid mode, without a table of
all pairs of coordinates.
"""
