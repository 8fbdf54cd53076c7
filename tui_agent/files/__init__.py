"""Access to a project's files: finds, opens and writes them safely, asks git, recognises secrets."""
