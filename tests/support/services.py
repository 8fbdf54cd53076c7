"""What an application is given where a test does not care: nothing is found, asked or kept."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tui_agent.app.services import AppServices, FileTransfer


def app_services(**given: Any) -> AppServices:
    """Return services: those given, and for the rest ones without a user, a network or files."""
    services = AppServices()
    plain = {"config_path": Path("config.toml"), "state_dir": None, "logins": SimpleNamespace(rows=tuple)}
    for name, value in (plain | {"transfer": FileTransfer(given["store"])} | given).items():
        setattr(services, name, value)
    return services
