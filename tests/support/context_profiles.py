"""How hard the property tests of the context rules look; ``TUI_AGENT_EXAMPLES`` asks for more."""

import os

EXAMPLES = int(os.environ.get("TUI_AGENT_EXAMPLES", "200"))
"""Examples per property."""
