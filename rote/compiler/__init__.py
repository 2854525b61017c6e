"""From two distributions to a plan: steps, their movement and cost, the compiler. No processes."""
