"""An entry kind that is shown and not sent to the model: the lines it takes, and the line each follows or precedes."""

IMPORT = "from tui_agent.session.entries import BookmarkEntry\n"
KIND = '''class BookmarkEntry(BookkeepingEntry):
    """A note of the user's that the model is not sent."""

    letter = "z"
    is_marker = True
    in_outline = True

    kind: Literal["bookmark"] = "bookmark"
    note: str


'''
PREVIEW = """        case BookmarkEntry():
            return entry.note
"""
BLOCK = """        case BookmarkEntry():
            return [MarkerBlock("bookmark", f"Bookmark: {entry.note}", rule="marker")]
"""
ADDED = {
    "tui_agent/session/entries.py": [("\nEntry = Annotated[\n", KIND, "    BookmarkEntry |\n")],
    "tui_agent/session/previews.py": [
        ("from tui_agent.session.entries import (\n", IMPORT, ""),
        ("    match entry:\n", "", PREVIEW),
    ],
    "tui_agent/ui/widgets/transcript/build.py": [
        ("from tui_agent.session.entries import (\n", IMPORT, ""),
        ("    match entry:\n", "", BLOCK),
    ],
}
"""By file: an anchor, what is put before its line, what after it."""
