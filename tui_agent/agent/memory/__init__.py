"""Uses and extends a project's memory: adds it to requests, counts its use, proposes new lines."""
