"""How a run is shown: the canonical text, and what a terminal makes of it."""
