"""Linear algebra of one matrix that is split over ranks: factors, solutions, eigenvalues and singular values."""
