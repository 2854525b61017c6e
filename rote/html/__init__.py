"""Plans and walks as HTML pages, to be stepped through in a browser; and cards, which notebooks show of values.

A page is self-contained: it loads nothing from a server, and its security policy forbids that. Pictures are tables, so
that screen readers can read them. They consist of runs of equal owners, not of elements, and do not grow with a tensor.
"""
