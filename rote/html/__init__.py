"""Plans and walks as HTML pages, to be stepped through in a browser; and cards, which notebooks show of values.

A page is self-contained: it loads nothing from a server, and its security policy forbids that. Maps are tables, so that
screen readers can read them, and are to scale; a tensor of three modes is drawn as a cube, too. All consist of runs of
equal owners, not of elements, and do not grow with a tensor. `maps` makes elements, maps and cubes; the pages and cards
of `page` are made of these.
"""
