"""Emission: programs as Python source that runs here, or in a file of its own."""
