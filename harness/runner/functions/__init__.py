"""Explores any function: cancels it everywhere, tries orders, and judges each run."""
