"""Methods of exchange: how the messages of one step travel.

`messages` lists the messages of a step on a rank. A method takes them to their receivers: between pairs of ranks
(`point_to_point`), by one collective call of MPI (`collective`), or through memory that ranks of a node share
(`shared`). `registry` has the names of all methods, and picks the usual one.
"""
