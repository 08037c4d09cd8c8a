"""A deterministic test harness and simulation toolkit for LLM agent loops."""
