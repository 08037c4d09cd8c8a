"""Agents on frameworks are no tests, and most environments do not have what they import."""

collect_ignore_glob = ["*/[!t]*.py"]
