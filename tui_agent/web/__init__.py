"""Pages of the web: which addresses may be reached, how a page is fetched and becomes Markdown."""
