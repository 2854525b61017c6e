"""`rote bench`: Rote and similar libraries on this machine, timed one after the other, round after round.

`cases` says what is timed and how, `libraries` how each library does it, within this process or by a C program, which
is compiled when it runs. `machine` describes where, and `report` prints the results.
"""
