"""Sample calls of public functions: rows of the primitives, a file a chapter, and of the doors."""
