"""The compiler, from two distributions to a plan: steps, their movement and their cost. No processes."""
