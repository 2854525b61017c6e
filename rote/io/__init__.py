"""Files that all ranks read and write at once, each rank its own part."""
