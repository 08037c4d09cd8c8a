"""Scenario files: read, checked with all their problems at once, and written back."""
