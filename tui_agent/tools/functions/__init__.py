"""Typed Python functions as tools: functions of a program that uses the library, and functions in tool files."""
