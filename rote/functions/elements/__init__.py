"""Functions of each element, of operands brought to lie alike; comparisons, dtypes, and tensors that lie as others."""
