"""Elements in ascending order: sorted, searched, the different ones, and how often each comes."""
