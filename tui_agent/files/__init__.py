"""Finds, opens and writes a project's files safely, asks git, and recognises secrets."""
