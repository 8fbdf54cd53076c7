"""What stands around the tree: its facts above, the keys below, and the page of all keys."""

from textual.content import Content
from textual.style import Style

from tui_agent.ui.format import money, tokens
from tui_agent.ui.widgets.transcript.wording import count_text
from tui_agent.ui.widgets.tree.finding import Hits
from tui_agent.ui.widgets.tree.session_tree import SessionTree

HINTS = (
    ("enter", "go", "app.simulate_key('enter')"),
    ("←→", "fold", "screen.fold"),
    ("/", "search", "screen.search"),
    ("ctrl+o", "filter", "screen.filter"),
    ("l", "label", "screen.label"),
    ("m", "merge", "screen.merge"),
    ("f", "fork", "screen.fork"),
    ("y", "copy", "screen.copy"),
    ("u", "undo move", "screen.undo"),
    ("space", "preview", "screen.preview"),
    ("?", "keys", "screen.keys"),
    ("esc", "back", "screen.back"),
)
"""Key, what it does, and the action of a click; as many as fit, the last two always."""

KEYS = """\
↑ ↓  pgup pgdn  home end    move
→                           unfold, show the calls of a row, next branch point
←                           fold, up to where the branch goes off
enter, double click         go there; a message of yours goes back into the prompt
shift+enter, c              go there and stay: continue from here
/                           search all text; n and N next and previous
ctrl+o                      show: default, no tools, user only, labelled, everything
space, p                    preview; tab goes into it
l                           label
m                           merge: a summary of this branch where you are
f                           fork: a new session that ends here
y                           copy
u, ctrl+r                   undo and redo the last move
escape                      back, nothing changed"""
"""All keys, for the help page."""


def hints(room: int, style: Style) -> Content:
    """Return the keys that fit, each to be clicked too; ``style`` is that of a key."""
    shown, last = list(HINTS[:-2]), list(HINTS[-2:])
    width = sum(len(key) + len(label) + 3 for key, label, _ in [*shown, *last])
    while shown and width > room:
        key, label, _ = shown.pop()
        width -= len(key) + len(label) + 3
    parts: list[Content] = []
    for key, label, action in (*shown, *last):
        press = Style.from_meta({"@click": action})
        parts.append(Content.assemble((key, style + press), (f" {label}", press)))
    return Content("  ").join(parts)


def facts_of_tree(tree: SessionTree) -> list[str]:
    """Return what is said of the whole tree, what of it is shown, and what a search found."""
    index = tree.outline.index
    facts = [count_text(len(index.headers), "entry"), count_text(max(index.branches, 1), "branch")]
    facts.append(f"{tokens(sum(root.tokens for root in index.roots))} tokens")
    if cost := sum(root.cost for root in index.roots):
        facts.append(money(cost))
    if index.leaf is None and index.headers:
        facts.append("at the beginning, before the first message")
    facts.append(f"showing {tree.view.filter}")
    if tree.hits is not None:
        facts.append(_found(tree.hits))
    return facts


def _found(hits: Hits) -> str:
    hidden = f", {hits.hidden:,} hidden by the filter" if hits.hidden else ""
    return f"{count_text(hits.total, 'match') if hits.total else 'nothing found'}{hidden}"
