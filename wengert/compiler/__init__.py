"""The compiler: a function is recorded once, and replayed as straight-line array code."""
