"""Stores sessions, which are append-only trees of immutable entries, in one SQLite file."""
