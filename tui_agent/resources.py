"""Finds prompts and style files: the user's own in the config directory, otherwise the program's."""

from functools import lru_cache
from pathlib import Path

from tui_agent.errors import UserFacingError
from tui_agent.path_checks import is_file
from tui_agent.paths import config_dir
from tui_agent.text_files.encodings import user_text

_PACKAGE = Path(__file__).parent


class ResourceError(UserFacingError):
    """Raised when a prompt file can't be read, or is missing although it should exist."""


@lru_cache(maxsize=1)
def data_root() -> Path:
    """Return the directory that contains the folders ``styles/`` and ``prompts/``.

    In a wheel they are inside the package; in a checkout they are next to it.
    """
    packed = _PACKAGE / "_data"
    return packed if packed.is_dir() else _PACKAGE.parent


def prompt(name: str) -> str:
    """Return the text of ``prompts/NAME.md``: the user's own if there is one, otherwise the program's.

    Raises:
        ResourceError: there is no such prompt, or the file can't be read.
    """
    own = config_dir() / "prompts" / f"{name}.md"
    if is_file(own):
        return _text(own)
    return packaged_prompt(name)


def packaged_prompt(name: str) -> str:
    """Return the text of the program's own ``prompts/NAME.md``, even if the user has replaced it.

    Raises:
        ResourceError: there is no such prompt, or the file can't be read.
    """
    return _text(data_root() / "prompts" / f"{name}.md")


def style_path(name: str) -> Path:
    """Return the path of ``styles/NAME``: the user's own file if there is one, otherwise the program's."""
    own = config_dir() / "styles" / name
    if is_file(own):
        return own
    return data_root() / "styles" / name


def _text(path: Path) -> str:
    try:
        return user_text(path.read_bytes()).replace("\r\n", "\n").strip()
    except OSError as error:
        raise ResourceError(f"Cannot read {path}: {error}") from error
