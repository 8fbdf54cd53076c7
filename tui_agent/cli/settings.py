"""``tui-agent config``: prints settings or the path of their file, and sets or removes a setting.

Checks the names of models and providers, and key bindings, before or after saving; config.py writes
the file.
"""

import json
import sys
from argparse import Namespace
from collections.abc import Sequence
from difflib import get_close_matches

from tui_agent.agent.permissions import rules_from_table
from tui_agent.cli.output import say
from tui_agent.config import (
    Config,
    config_path,
    get_value,
    load_config,
    parse_value,
    set_value,
    split_key,
    without_secrets,
)
from tui_agent.model.providers import PROVIDERS

MODEL_KEYS = frozenset({"model", "small_model", "fallback_models", "compaction.model"})
"""Settings whose values are names of models, so that the names are checked."""


def check_before_saving(key: str, value: object) -> str:
    """Check model names and permission rules; return a warning; "" if there is none.

    Other settings are checked when they are saved.

    Raises:
        UnknownModelError: the value names a model that can't exist.
        RuleError: the value is not a valid permission rule.
    """
    if key in MODEL_KEYS:
        return _model_warnings(value if isinstance(value, list | tuple) else [value])
    table, *names = split_key(key)
    if table == "permissions":
        for name in reversed(names):
            value = {name: value}
        if isinstance(value, dict):
            rules_from_table(value, "user")
    return ""


def _model_warnings(names: Sequence[object]) -> str:
    """Return warnings about unknown models; raises UnknownModelError if a model can't exist."""
    from tui_agent.cli.models import catalog_of

    catalog = catalog_of(load_config().config)
    warnings = []
    for name in names:
        if warning := catalog.require(str(name)):
            warnings.append(warning)
    if not warnings:
        return ""
    return f"{' '.join(warnings)} Saved anyway, because the provider may know the name."


def _name_warning(table: str, name: str, config: Config) -> str:
    """Return a warning about an unknown model or provider, or about key bindings; "" for none."""
    match table:
        case "models" if name in config.models and "*" not in name:
            if config.models[name].base_url:
                return ""
            others = {known: settings for known, settings in config.models.items() if known != name}
            from tui_agent.cli.models import catalog_of

            return catalog_of(config.model_copy(update={"models": others})).judge(name).sentence
        case "providers":
            if name in PROVIDERS:
                return ""
            close = get_close_matches(name, PROVIDERS, 3)
            meant = ""
            if close:
                meant = f" Did you mean {' or '.join(close)}?"
            return f"“{name}” is not a known provider. This setting applies to models named {name}/….{meant}"
        case "keys":
            from tui_agent.ui.key_help import check_keymap, rebindable_actions
            from tui_agent.ui.screens.main import MainScreen

            found = check_keymap(config.keys, rebindable_actions(MainScreen.BINDINGS))
            return " ".join(found.problems)
        case _:
            return ""


def run_config(arguments: Namespace) -> int:
    match arguments.action:
        case "path":
            say(str(config_path()))
        case "get" if arguments.key:
            value = get_value(load_config(), arguments.key)
            if isinstance(value, dict | list | tuple):
                value = without_secrets(split_key(arguments.key), value)
            say(_shown(value))
            if value is None:
                say(f"{arguments.key} is not set.", file=sys.stderr)
        case "get":
            from tui_agent.setting_rows import UNSET, setting_rows

            loaded = load_config()
            for row in setting_rows(loaded):
                value = row.value
                if not row.editable and value != UNSET:
                    value = _shown(without_secrets(split_key(row.key), get_value(loaded, row.key)))
                setting = f"{row.key} = {'(not set)' if value == UNSET else value}"
                say(f"{setting:<52}  # {row.origin}")
        case "set":
            _set(arguments.key, parse_value(arguments.value))
        case _:
            loaded = set_value(arguments.key, None)
            say(f"{arguments.key} is no longer set in {loaded.path}.")
    return 0


def _set(key: str, value: object) -> None:
    warning = check_before_saving(key, value)
    loaded = set_value(key, value)
    table, *names = split_key(key)
    warnings = [warning, *loaded.warnings]
    if names:
        warnings.append(_name_warning(table, names[0], loaded.config))
    for text in warnings:
        if text:
            say(text, file=sys.stderr)
    shown = _shown(without_secrets(split_key(key), get_value(loaded, key)))
    say(f"{key} = {shown} in {loaded.path}")


def _shown(value: object) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)
