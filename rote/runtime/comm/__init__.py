"""Communicators: the protocol, its MPI and in-process implementations, and the caches that live on them."""
