"""Sessions that leave and come in: what a file of one looks like, ours and other programs'."""
