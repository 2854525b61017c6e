"""Transforms of one rank's block, by any library, in tiles that fit the cache, and how the fastest are found."""
