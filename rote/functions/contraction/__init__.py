"""Contractions: planned, proved and run as moves and products of what is local.

    "ik,kj->ij"
        subscripts      letters and their extents
        compile         a request: where operands and result lie, or that this is free
        search          trees of products (tree), and which grid modes split which letters (assignment)
        cheapest        the first tree that no bound is below and that fits into memory, perhaps in panels
        plan            its stages: moves by compiled plans, and products (algorithms names them)
    bounds <- plan -> proof        what no plan can do better; that this one is right
        run             each stage called on a rank's blocks (local, diagonals), each move on all ranks

`operands` brings the operands of other functions to one assignment, in which they are called on blocks.
"""
