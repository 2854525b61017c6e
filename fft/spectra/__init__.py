"""What is done with spectra: wavenumbers, shifts, convolutions."""
