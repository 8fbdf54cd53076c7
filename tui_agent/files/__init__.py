"""Files of a project as git, searches and secrets see them: found, opened and written safely."""
