"""One rank's block: its transforms by any library, in tiles that fit the cache, and how the fastest are found."""
