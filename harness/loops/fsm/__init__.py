"""The state-machine loop: one blocking step after the other, states and transitions as a table."""
