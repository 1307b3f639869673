"""Random programs whose state changes between calls, compiled and eager."""
