"""Servers of the Model Context Protocol: their tools, prompts and resources.

The SDK is imported when one starts.
"""
