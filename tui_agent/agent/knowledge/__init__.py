"""Files by which a project and its user guide the agent: instructions, skills, commands, agents."""
