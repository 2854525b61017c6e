"""Elements brought to other indices: keys read and elements fetched by them, assigned, joined, placed, reshaped."""
