"""Runs checkers (linters, compilers, language servers) on the files that the agent changed."""
