"""The turn loop: one reply, its tools in parallel batches, and again, up to a budget of steps."""
