"""Detached runs: the full-screen program on a pseudo-terminal, to which terminals attach.

A separate process (`host`) holds the pseudo-terminal and listens on a socket in a private
directory (`runs`). Terminals connect to the socket (`attach`) and exchange messages with it
(`frames`). The program itself runs as on any terminal.
"""
