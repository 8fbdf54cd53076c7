"""The full-screen program: shows sessions, and passes messages and commands to the controller."""
