"""The compiler: from two distributions of a tensor to a proved plan of the steps between them.

What moves: `components` divides a transition into components, and finds the lattices of elements that both sides of a
component have in common. `messages` takes the elements of one rank from them, by peer. `volumes` counts elements and
messages for all ranks at once, without making any message, and `along` does so for one long grid mode.

What is chosen: a `step` is one movement, named by the `rules`. `cost` counts its bytes and models its seconds, `search`
finds the cheapest steps, and a `plan` has them. `compile` is the door. `verify` proves plans by other means.
"""
