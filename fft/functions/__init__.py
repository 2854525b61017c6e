"""Functions of tensors: transforms under NumPy's and SciPy's names, shifts, frequencies and convolutions."""
