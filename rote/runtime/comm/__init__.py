"""Communicators: what ranks call together, whether they are MPI processes or threads of this process.

All other packages use only the protocol `Comm` (`protocol`). It has two implementations, `mpi` and `threads`, which
share the base of `cache`, and reductions with the same bits on all transports (`reductions`). Threads have mpi4py's
calls as well (`mpi4py_calls`). `agreement` refuses calls in which ranks differ; `segments` is the memory that processes
of a node share; `rawfile` moves parts of files; `resolve` finds the communicator that a program runs on.
"""
