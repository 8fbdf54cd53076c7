"""Where a text stands in the lines on screen."""

from collections.abc import Iterator


def find_all(text: str, query: str) -> Iterator[tuple[int, int]]:
    """Yield where a text holds a query, whatever the case."""
    folded, wanted = text.lower(), query.lower()
    if not wanted or len(folded) != len(text):
        return
    start = folded.find(wanted)
    while start >= 0:
        yield start, start + len(wanted)
        start = folded.find(wanted, start + len(wanted))
