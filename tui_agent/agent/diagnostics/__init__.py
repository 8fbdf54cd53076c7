"""What programs that check a project find in what the agent changed."""
