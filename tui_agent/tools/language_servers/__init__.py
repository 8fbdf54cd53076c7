"""Finds and runs a project's language servers, and converts their answers to places in files.

- ``known``, ``settings``: the servers for each language.
- ``servers``, ``server``, ``connection``: start servers, send requests, and end servers.
- ``documents``, ``place``: the files that are sent to a server, and their URIs.
- ``lookup``, ``spots``, ``answers``: answer a call of the ``code`` tool.
"""
