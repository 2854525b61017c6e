"""Methods of exchange: how the messages of one step travel.

`messages` lists the messages of a step on a rank. A method takes them to their receivers: between pairs of ranks
(`point_to_point`), by one collective call of MPI (`collective`), through memory that ranks share (`shared`), or both
between nodes and inside them (`hierarchical`). `registry` has the names of all methods, and picks the usual one.
"""
