"""Element-wise functions of operands in matching layouts; comparisons, dtypes, and tensors in the layout of others."""
