"""How much of what an agent uses later survives its context management, replayed from recorded sessions.

No model takes part: the recorded answers are the agent's, the recorded outputs the tools', and summaries are made by
rule, the same for every policy. So every number is the same on every machine. ``python -m benchmarks.fidelity``.
"""
