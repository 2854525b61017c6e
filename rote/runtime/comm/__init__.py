"""Communicators: what ranks call together, whether they are MPI processes or threads of this process.

All other packages use the protocol `Comm` alone (`protocol`). It has two implementations, `mpi` and `threads`, which
share the base of `cache`, the moving of parts of files (`rawfile`), and reductions with the same bits on all transports
(`reductions`). `agreement` refuses calls in which ranks differ; `segments` is the memory that processes of a node
share; `resolve` finds the communicator that a program runs on.
"""
