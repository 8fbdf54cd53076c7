"""Asks in a terminal for a provider's key and keeps it: what an editor runs for someone who has none set."""

import getpass
import sys

from tui_agent.cli.model_choice import DEFAULT_MODELS
from tui_agent.cli.output import say
from tui_agent.config import config_path, set_value


def run_login() -> int:
    """Ask for a provider and its key, and write the key to the user's settings."""
    if not sys.stdin.isatty():
        say("A key is asked for in a terminal only.", file=sys.stderr)
        return 1
    known = list(dict.fromkeys(model.partition("/")[0] for model in DEFAULT_MODELS))
    provider = input(f"Provider ({', '.join(known)}): ").strip().lower()
    key = getpass.getpass("Key (it is not shown): ").strip() if provider.replace("-", "").isalnum() else ""
    if not key:
        say("Nothing was changed.")
        return 1
    set_value(f'providers."{provider}".api_key', key)
    say(f"The key of {provider} is kept in {config_path()}, which only you can read.")
    return 0
