"""``tui-agent config``: where the settings are, what they are, and changing one."""

import json
import sys
from argparse import Namespace

from pydantic import BaseModel

from tui_agent.cli.output import say
from tui_agent.config import Config, config_path, get_value, load_config, parse_value, set_value


def run_config(arguments: Namespace) -> int:
    match arguments.action:
        case "path":
            print(config_path())
        case "get" if arguments.key:
            loaded = load_config()
            value = get_value(loaded, arguments.key)
            print(_shown(value))
            if value is None:
                print(_what_instead(arguments.key, loaded.config), file=sys.stderr)
        case "get":
            _print_all()
        case "set":
            _set(arguments.key, parse_value(arguments.value))
        case _:
            loaded = set_value(arguments.key, None)
            print(f"{arguments.key} is no longer set in {loaded.path}")
    return 0


def _what_instead(key: str, config: Config) -> str:
    from tui_agent.cli.models import catalog_of, choose_model, keys_of

    if key != "model":
        return f"{key} is not set."
    model = choose_model(config, keys_of(config).available(), catalog_of(config).knows)
    return f"{key} is not set; new sessions use {model}." if model else f"{key} is not set, and no provider has a key."


def _print_all() -> None:
    """Print every setting, set or not, with its value and where that comes from."""
    from tui_agent.setting_rows import UNSET, setting_rows

    loaded = load_config()
    for row in setting_rows(loaded):
        value = row.value if row.editable or row.value == UNSET else _shown(_hide_keys(get_value(loaded, row.key)))
        setting = f"{row.key} = {'(not set)' if value == UNSET else value}"
        say(f"{setting:<52}  # {row.origin}")


def _set(key: str, value: object) -> None:
    from tui_agent.cli.setting_checks import doubts, require_sense

    warning = require_sense(key, value)
    loaded = set_value(key, value)
    for told in filter(None, [warning, *doubts(key, loaded)]):
        say(told, file=sys.stderr)
    print(f"{key} = {_shown(_hide_keys(get_value(loaded, key)))} in {loaded.path}")


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _hide_keys(value: object) -> object:
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json", exclude_none=True)
    if isinstance(value, list | tuple):
        return [_hide_keys(item) for item in value]
    if isinstance(value, dict):
        return {key: "…" if key == "api_key" and item else _hide_keys(item) for key, item in value.items()}
    return value
