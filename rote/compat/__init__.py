"""The interfaces of other packages, implemented with Rote's public names: a module per package, with its names."""
