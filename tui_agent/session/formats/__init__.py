"""Sessions that leave and come in: the file formats, ours and other programs'."""
