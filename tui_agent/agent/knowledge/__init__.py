"""What a project and its user tell the agent in files: instructions, skills, commands, agents."""
