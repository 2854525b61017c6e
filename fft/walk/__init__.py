"""Walks: parallel transforms as layouts with transforms between moves.

`walk` has the value: stages, their actions, and the moves between them. `check` makes it of lines, as texts and
families write them, and refuses what is no transform; for that, `digits` follows what each mode stands for.
`wavenumbers` says which frequencies the elements of a spectrum have.
"""
