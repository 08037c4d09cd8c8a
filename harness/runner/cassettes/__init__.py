"""Cassettes and runs: a loop played on a cassette, and a cassette turned into a scenario."""
