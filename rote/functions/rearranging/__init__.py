"""Functions that bring elements to other indices and shapes: keys, assignment, reshaping, padding, joining.

Where NumPy gives a view, the result is a part of the tensor (`rote.functions.distributed`), and nothing moves if the
layout's digits allow. Elsewhere an indexed move fetches what a rank lacks.
"""
