"""Holds the reference loops against recorded behaviour: one line of JSON, one vector."""
