"""Names of other packages, over the public names of Rote."""
