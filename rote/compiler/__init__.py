"""The compiler: from two distributions of a tensor to a proved plan of the steps between them.

What moves: a `movement` is what goes from where to where. It has the messages of one rank, and the volumes of all ranks
at once, for which no message is made. It is a product of parts, each with its `factor`: what both sides have in common
along some digits, as lattices (`overlaps`), in numbers (`pairs`, or `along` for one long grid mode). Along grid modes
that split nothing, the rules of `peers` say who exchanges data.

What is chosen: a `step` is one movement, named by the `rules`. `cost` counts its bytes and models its seconds, `search`
finds the cheapest steps, by `best_first`, and a `plan` has them, which `text` reads back. `compile` is the door.
`digits` writes a plan as operations that are the same on all ranks.
`verify` proves plans by other means: of movements it reads the lattices, the rules and the messages, and counts anew.
"""
