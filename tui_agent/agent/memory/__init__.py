"""Adds a project's memory to the request head, counts its use, and proposes new lines.

``files.memory`` stores the memory.
"""
