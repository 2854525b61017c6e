"""A walk bound to ranks: operations, one after the other, between buffers."""
