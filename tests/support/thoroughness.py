"""How hard tests look: enough to notice a mistake before each commit, at length and at random every night.

``make nightly`` sets ``TUI_AGENT_NIGHTLY``.
"""

import os

NIGHTLY = bool(os.environ.get("TUI_AGENT_NIGHTLY"))


def examples(count: int) -> int:
    """Return the examples of a property: a third of ``count``, at least ten; every night five times ``count``."""
    return 5 * count if NIGHTLY else max(10, count // 3)


EXAMPLES = examples(200)
"""Examples per property of the context rules."""
