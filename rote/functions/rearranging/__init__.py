"""Functions that move elements to other indices: indexing, assignment, joining, placing, reshaping."""
