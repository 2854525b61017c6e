"""One movement of a tensor: its components, the overlaps in each, the messages of every rank, and their volumes."""
