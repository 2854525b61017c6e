"""Operations on spectra: wavenumbers, shifts, convolutions."""
