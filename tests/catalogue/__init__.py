"""Sample calls of public functions, one file for each room."""
