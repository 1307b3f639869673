"""Workloads as people run them, beside their peers: ``python -m benchmarks workloads``.

Each file has a family of programs, `rows` the table of what is run, `workload` how each library
runs a program, and `measure` the times and the bars.
"""
