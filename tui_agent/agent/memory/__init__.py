"""The memory of a project in a session: proposes lines after a run, names their sources, counts their use."""
