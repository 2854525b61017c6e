"""A walk bound to ranks, and run.

`operations` lowers a walk to the operations of a rank, with their factors (`twiddles`). `program` binds them to
workspace, and runs them on tensors and fields, in both directions.
"""
