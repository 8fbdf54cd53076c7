"""Carries out a tool call: the stages around it, its context, and its one result."""
