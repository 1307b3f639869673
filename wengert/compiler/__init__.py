"""The compiler: records a function once, and replays it as straight-line array code."""
