"""``tui-agent schema``: the JSON schema of the lines that ``--json`` prints."""

import json
from argparse import Namespace


def run_schema(_arguments: Namespace) -> int:
    """Print the schema; returns the exit code."""
    print(schema_text(), end="")
    return 0


def schema_text() -> str:
    """Return the schema as ``docs/events.schema.json`` holds it."""
    from tui_agent.cli.events import events_schema

    return json.dumps(events_schema(), ensure_ascii=False, indent=2) + "\n"
