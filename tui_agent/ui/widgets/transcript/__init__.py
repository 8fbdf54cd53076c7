"""The conversation: a widget that draws the entries of a session line by line.

Start reading at ``transcript.py``.
"""
