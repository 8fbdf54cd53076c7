"""Shell commands understood before they run: parsed, taken apart, and judged one simple command at a time.

Pure but for looking up where paths lead. Nothing outside needs more than ``command_needs``, which is imported from
``tui_agent.shell.needs`` where it is used: the parser is not loaded before the first command.
"""
