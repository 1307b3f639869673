"""What NumPy and CuPy compute faster than the composites of the rows of `wengert.nn`."""
