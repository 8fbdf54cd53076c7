"""``tui-agent config``: where the settings are, what they are, and changing one."""

import json
from argparse import Namespace

from tui_agent.config import config_path, get_value, load_config, parse_value, set_value


def run_config(arguments: Namespace) -> int:
    """Print or change settings."""
    match arguments.action:
        case "path":
            print(config_path())
        case "get" if arguments.key:
            print(_shown(get_value(load_config(), arguments.key)))
        case "get":
            for key, value in load_config().config.model_dump(mode="json", exclude_none=True).items():
                print(f"{key} = {_shown(_hide_keys(value))}")
        case "set":
            loaded = set_value(arguments.key, parse_value(arguments.value))
            print(f"{arguments.key} = {_shown(_hide_keys(get_value(loaded, arguments.key)))} in {loaded.path}")
        case _:
            loaded = set_value(arguments.key, None)
            print(f"{arguments.key} is no longer set in {loaded.path}")
    return 0


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _hide_keys(value: object) -> object:
    if isinstance(value, dict):
        return {key: "…" if key == "api_key" and item else _hide_keys(item) for key, item in value.items()}
    return value
