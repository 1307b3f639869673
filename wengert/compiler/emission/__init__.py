"""Emission: programs as Python source, to run in this process or from a saved file."""
