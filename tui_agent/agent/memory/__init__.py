"""Lines for a project's memory: proposed at the end of a run, with their sources, and counted when they are of use."""
