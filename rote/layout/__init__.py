"""What a layout means: grid, kinds, index sets, views, Layout, Distribution. No processes, no communication."""
