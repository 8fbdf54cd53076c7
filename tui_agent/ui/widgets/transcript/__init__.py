"""The conversation pane: one line-rendered widget over the entries of a session.

Start with ``transcript.py``.
"""
