"""Random programs: `programs` draws and runs them on several libraries, which have to agree."""
