"""Programs as NumPy's users write them: functions of the parameters that are differentiated.

``n`` is the library: `wengert.numpy`, or NumPy itself for differences.
"""
