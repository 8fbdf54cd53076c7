"""What an application is given where a test does not care: nothing is found, asked or kept."""

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from tui_agent.app.services import AppServices
from tui_agent.config import Config
from tui_agent.model.naming import NameStanding, NameVerdict
from tui_agent.trust import ProjectState


def nothing(*_given: object) -> None:
    """Do nothing."""


async def nobody(*_given: object) -> tuple[()]:
    return ()


def known(name: str) -> NameVerdict:
    return NameVerdict(name, NameStanding.KNOWN)


def app_services(**given: Any) -> AppServices:
    """Return services: those given, and for the rest ones without a user, a network or files."""
    plain: dict[str, Any] = {
        "config_path": Path("config.toml"), "state_dir": None, "own_places": (),
        "warnings": (), "logins": SimpleNamespace(rows=tuple),
        "clock": time.time, "on_ready": nothing, "close_session": nothing, "show_agent": nothing,
        "detached_as": "", "detach_terminals": nothing, "go_on_detached": nothing, "detached_run": nothing,
        "config": Config, "save_setting": nothing, "settings_rows": tuple, "reread_settings": tuple, "doctor": tuple,
        "trust_question": nothing, "project_state": ProjectState, "answer_trust": nothing,
        "problem_of_command": lambda _cwd, _command: "", "forget_rule": nothing, "keep_rule": nothing,
        "check_command": lambda _project: "", "keep_check": nothing,
        "models": tuple, "ask_servers": nobody, "judge_model": known, "cache_miss_cost": nothing, "price": nothing,
        "provider_keys": dict, "find_servers": nobody,
        "list_files": nobody, "branch": nobody,
    }  # fmt: skip
    return cast("AppServices", SimpleNamespace(**plain | given))
