"""The web: which addresses may be reached, how pages are fetched, searched and made Markdown."""
