"""Communicators: their protocol, MPI's and in-process ones, which one is meant, and what is kept on them."""
