"""The command line: reads arguments, wires the real parts together, starts the screen or the headless run."""
