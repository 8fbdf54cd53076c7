"""Web access: fetches pages from allowed addresses, searches the web, converts HTML to Markdown."""
