"""Functions of tensors: transforms under NumPy's and SciPy's names, shifts, frequencies and convolutions.

`fourier` has all transforms, families of functions that call one, `transform`; `shifts` has what goes with them.
`dispatch` lets the functions of `numpy.fft` take tensors.
"""
