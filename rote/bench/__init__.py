"""`rote bench`: Rote and similar libraries on this machine, timed one after the other, round after round.

`cases` says what is timed and how, `libraries` and `programs` how each library does it: the first within this process,
the second by a C program, which is compiled when it runs. `machine` describes where, and `report` prints the results.
"""
