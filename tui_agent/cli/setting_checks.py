"""What is wrong with a setting that is accepted as such: it names something that is not there."""

from collections.abc import Sequence
from difflib import get_close_matches

from tui_agent.agent.permissions import rules_from_table
from tui_agent.config import Config, LoadedConfig, load_config, split_key
from tui_agent.model.providers import PROVIDERS

MODEL_KEYS = frozenset({"model", "small_model", "compaction.model"})
"""Settings that name a model."""


def require_sense(key: str, value: object) -> str:
    """Return what to warn of before a value is saved, "" when there is nothing.

    Raises:
        UnknownModelError: it names a model that nobody could be asked for.
        RuleError: it is a permission rule that says nothing.
    """
    if key in MODEL_KEYS:
        model = str(value)
        config = load_config().config
        from tui_agent.cli.models import catalog_of
        from tui_agent.model.naming import require

        warning = require(model, catalog_of(config))
        return f"{warning} It is saved all the same: the provider may know it." if warning else ""
    table, *names = split_key(key)
    if table == "permissions":
        for name in reversed(names):
            value = {name: value}
        if isinstance(value, dict):
            rules_from_table(value, "user")
    return ""


def doubts(key: str, loaded: LoadedConfig) -> Sequence[str]:
    """Return what is odd about the settings now that one was saved; of another's name only what this one brought."""
    names = split_key(key)
    return (*loaded.warnings, *filter(None, [_about_name(names[0], names[1], loaded.config)] if names[1:] else []))


def _about_name(table: str, name: str, config: Config) -> str:
    match table:
        case "models" if name in config.models and "*" not in name:
            if config.models[name].base_url:
                return ""
            others = {known: settings for known, settings in config.models.items() if known != name}
            return _judged(name, config.model_copy(update={"models": others}))
        case "providers":
            if name in PROVIDERS:
                return ""
            close = get_close_matches(name, PROVIDERS, 3)
            meant = f" Did you mean {' or '.join(close)}?" if close else ""
            return f"“{name}” is not a known provider: it is used for models named {name}/….{meant}"
        case "keys":
            from tui_agent.ui.key_help import rebindable_actions, writing_keys
            from tui_agent.ui.keymap import checked
            from tui_agent.ui.screens.main import MainScreen

            _good, problems = checked(config.keys, rebindable_actions(MainScreen.BINDINGS), writing_keys())
            return " ".join(problems)
        case _:
            return ""


def _judged(model: str, config: Config) -> str:
    from tui_agent.cli.models import catalog_of
    from tui_agent.model.naming import judge

    return judge(model, catalog_of(config)).sentence
