"""Runs MCP (Model Context Protocol) servers, and offers their tools, prompts and resources.

- ``settings``, ``records``: a server's settings, and the data types that the program uses.
- ``hub``: a project's servers, and which of their tools the model is offered.
- ``server``, ``connection``, ``http``, ``oauth``: run one server, and connect to it.
- ``leniency``, ``content``: repair and convert servers' answers; ``tools``: tools for the model.
- ``sandbox_limits``: explains failures that the sandbox caused.

The protocol's SDK is imported only when the first server starts.
"""
