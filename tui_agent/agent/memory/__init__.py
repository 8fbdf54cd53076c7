"""Uses and extends a project's memory: adds it to the head, counts its use, proposes new lines.

``files.memory`` stores the memory.
"""
