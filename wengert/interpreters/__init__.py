"""Interpreters that run rules on Tensors, dual numbers and batches instead of raw arrays."""
