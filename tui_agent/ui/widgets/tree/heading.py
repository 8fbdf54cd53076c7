"""What stands around the tree: its facts above, the keys below, and the page of all keys."""

from tui_agent.app.format import money, tokens
from tui_agent.ui.widgets.key_line import Hint
from tui_agent.ui.widgets.transcript.wording import count_text
from tui_agent.ui.widgets.tree.rows import Filter
from tui_agent.ui.widgets.tree.search_matches import Hits
from tui_agent.ui.widgets.tree.session_tree import SessionTree

SEARCH_HINTS: tuple[Hint, ...] = (
    ("enter", "keep", "app.simulate_key('enter')"),
    ("↓", "next", "screen.hit(1)"),
    ("↑", "previous", "screen.hit(-1)"),
    ("esc", "back", "screen.back"),
)
"""While a search is typed."""

LABEL_HINTS: tuple[Hint, ...] = (
    ("enter", "keep, empty removes", "app.simulate_key('enter')"),
    ("esc", "back", "screen.back"),
)
"""While a label is typed."""

HINTS: tuple[Hint, ...] = (
    ("enter", "go", "app.simulate_key('enter')"),
    ("←→", "fold", "focused.toggle_branch"),
    ("/", "search", "screen.search"),
    ("ctrl+o", "filter", "screen.filter"),
    ("l", "label", "screen.label"),
    ("M", "merge", "screen.merge"),
    ("s", "summarise up to here", "screen.compact"),
    ("f", "fork", "screen.fork"),
    ("r", "race", "screen.race"),
    ("d", "diff", "screen.diff"),
    ("y", "copy", "screen.copy"),
    ("u", "undo", "screen.undo"),
    ("space", "preview", "screen.preview"),
    ("?", "keys", "screen.keys"),
    ("esc", "back", "screen.back"),
)
"""As many as fit, the last two always."""

KEYS = """\
↑ ↓ pgup pgdn home end   move; j k g G too
→                        unfold, open a row of calls, next branch
←                        fold, back to where the branch goes off
enter, double click      go there; your own message: edit it
shift+enter, c           go there and continue after it
/                        search all text; n and N: other hits
ctrl+o                   show less, or everything
space                    preview; tab goes into it
l                        label
M                        merge: summarise this branch where you are
s                        summarise up to here: what is before it, after a look
f                        fork: a new session that ends here
d                        how files differ between the entry and here
r                        race: one prompt several times at once, from here
o                        open the session of a subagent, or the runner of a race
y                        copy
u, ctrl+r                undo and redo the last thing done, files too
esc                      back, nothing changed"""
"""All keys, for the help page."""


def facts_of_tree(tree: SessionTree) -> list[str]:
    """Return what a search found, what is shown, and what is said of the whole tree."""
    index = tree.outline.index
    facts = [_found(tree.hits)] if tree.hits is not None else []
    if tree.view.filter is not Filter.DEFAULT:
        facts.append(f"showing {tree.view.filter}")
    if index.leaf is None and index.headers:
        facts.append("at the beginning, before the first message")
    facts.append(count_text(len(index.headers), "entry"))
    facts.append(count_text(max(index.branches(tree.has_failed), 1), "branch"))
    facts.append(f"{tokens(sum(root.tokens for root in index.roots))} tokens")
    if cost := sum(root.cost for root in index.roots):
        facts.append(money(cost))
    return facts


def _found(hits: Hits) -> str:
    hidden = f", {hits.hidden:,} hidden by the filter" if hits.hidden else ""
    return f"{count_text(hits.total, 'match') if hits.total else 'nothing found'}{hidden}"
