"""The program without a terminal: it goes on in one of its own, and terminals attach to it.

A *detached run* is the full-screen program on a pseudo-terminal that a process of its own holds
(`host`). Its socket, in a private directory (`runs`), is what terminals attach to (`attach`). Both
ends are the program as it is everywhere else: there is no second interface and no second protocol.
"""
