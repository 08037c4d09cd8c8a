"""One run put together: the only place that knows both the simulator and the loops."""
