"""A check of an array library, from a clone: ``python -m backend_check LIBRARY``.

Every function of Wengert runs on the library and on NumPy, with its derivatives and as a compiled
program. The results are compared, and so is each call of the library's own functions.
"""
