"""Functions of tensors: transforms under NumPy's and SciPy's names, shifts, frequencies and convolutions.

All transforms call one function, `transform` in `fourier`: it plans a walk when it first meets its arguments, keeps the
bound walk on the communicator, and runs it. `real` has those of real numbers, `along` those of one axis or two, which
are made from three signatures. `dispatch` lets `numpy.fft` take tensors.
"""
