"""Random programs: `generator` writes them, `engines` run them, and `judge` compares."""
