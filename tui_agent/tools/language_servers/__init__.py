"""Language servers of a project: which ones there are, the process of each, and its answers as places in files."""
