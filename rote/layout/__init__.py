"""The meaning of layouts: grid, kinds, index sets, views, Layout, Distribution. No processes, no communication."""
