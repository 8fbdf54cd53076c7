"""The full-screen program, in Textual: shows sessions, and passes messages and commands on."""
