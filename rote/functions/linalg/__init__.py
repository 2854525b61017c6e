"""Linear algebra by NumPy's names: products, stacks of matrices, orthogonal factors, norms."""
