"""One movement of a tensor: its components, what overlaps in each, the messages of every rank, and their volumes."""
