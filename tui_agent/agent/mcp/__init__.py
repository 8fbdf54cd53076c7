"""Runs MCP (Model Context Protocol) servers, and offers their tools, prompts and resources.

The protocol's SDK is only imported when the first server starts.
"""
