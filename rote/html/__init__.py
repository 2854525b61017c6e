"""Plans and walks as one page each, to be stepped through in a browser; and what notebooks show of values.

A page is whole in itself: it asks no server for anything, and its policy forbids it to. A picture is a table, so that
it is read as well as seen; it is made of runs of equal owners, not of elements, and is no larger for a large tensor.
"""
