"""Language servers of a project: finds them, runs them, and turns their answers into places in files."""
