"""Child processes: started, watched, read, and ended with everything they left running."""
