"""What an application is given where a test does not care: nothing is found, asked or kept."""

from pathlib import Path
from typing import Any

from tui_agent.app.services import AppServices, FileTransfer
from tui_agent.config import Config


async def _none(*_: object) -> tuple[()]:
    return ()


async def _nothing(*_: object) -> None:
    return None


class NoLogins:
    """No provider takes a key."""

    def rows(self) -> tuple[()]:
        return ()


def app_services(**given: Any) -> AppServices:
    """Return services: those given, and for the rest ones without a user, a network or files."""
    plain: dict[str, Any] = {
        "close_session": lambda _session: None,
        "config": Config,
        "save_setting": lambda _key, _value: None,
        "settings_rows": tuple,
        "reread_settings": tuple,
        "warnings": (),
        "doctor": tuple,
        "config_path": Path("config.toml"),
        "state_dir": None,
        "models": tuple,
        "ask_servers": _none,
        "judge_model": lambda _name: None,
        "reread_cost": lambda _model, _tokens: None,
        "price": lambda _model, _usage: None,
        "check_command": lambda _project: "",
        "keep_check": lambda _project, _command: None,
        "provider_keys": tuple,
        "logins": NoLogins(),
        "own_servers": tuple,
        "find_servers": _none,
        "use_server": lambda server, model: f"{server.name}/{model}",
        "list_files": _none,
        "branch": _nothing,
        "trust_question": lambda: None,
        "answer_trust": lambda _answer: None,
        "forget_rule": lambda _rule: None,
        "keep_rule": lambda _rule: None,
        "transfer": FileTransfer(given["store"]),
        "on_ready": lambda: None,
    }
    return AppServices(**plain | given)
