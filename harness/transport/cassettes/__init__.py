"""Recorded provider traffic: how it is stored, kept free of secrets, matched and played again."""
