"""Mutation testing: how many small edits of the package the tests notice."""
