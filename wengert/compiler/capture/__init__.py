"""Capture: one run of a function written down, with what it read and what it changed."""
