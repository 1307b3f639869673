"""Capture: records one run of a function, the state that it reads, and what it changes."""
