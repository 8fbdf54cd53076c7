"""Runs checkers (linters, compilers, language servers) on files that the agent changed."""
