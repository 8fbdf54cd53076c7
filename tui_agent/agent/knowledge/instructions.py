"""Instruction files (AGENTS.md and its relatives): which there are, and what the model is shown of them."""

import hashlib
import logging
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tui_agent.agent.knowledge.documents import DocumentError, FileCache, LeftOutError, parse_document
from tui_agent.agent.knowledge.folders import Folders
from tui_agent.files.atomic import write_atomically
from tui_agent.files.globs import compile_glob
from tui_agent.files.ignore import IgnoreRules
from tui_agent.lazy import dataclass
from tui_agent.places import places_of

NAMES = tuple(place.project for place in places_of("instructions"))
"""One file per directory is taken, the first of these."""
FILE_BYTES = 32 * 1024
"""Bytes of one file the model is shown."""
MAX_FILES = 50
"""Files that one pattern of the ``instructions`` setting may name."""
_RULE = ".mdc"
"""Suffix of Cursor's rules, which have front matter."""
_FOREIGN = frozenset({"node_modules", "site-packages", ".venv", "venv", "vendor"})
"""Directories of other people's code: what is written there is not meant for this project."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One file of instructions. ``name`` is how it is shown, ``text`` what the model gets of it."""

    name: str
    text: str

    @property
    def section(self) -> str:
        """The file as it stands in the head."""
        # A closing tag inside would end the section early, for the model and for whoever counts its tokens.
        body = self.text.replace("</instructions>", "<\\/instructions>")
        return f'<instructions path="{self.name.replace(chr(34), chr(39))}">\n{body}\n</instructions>'


FETCH_SECONDS = 4.0
"""How long all of one fetch may take."""
FRESH_SECONDS = 24 * 3600
"""A kept text younger than this is used without asking again."""
FETCHED_BYTES = 32 * 1024
"""Bytes of a text that are used."""


class RemoteError(Exception):
    """A text could not be had and none was kept; the message is one sentence for a person."""


Fetch = Callable[[str], str]


def is_url(text: str) -> bool:
    """Whether an ``instructions`` entry is a URL."""
    return text.startswith(("http://", "https://"))


class RemoteTexts:
    """Texts by URL. ``folder`` is where they are kept, ``clock`` returns seconds since the epoch."""

    def __init__(self, folder: Path, fetch: Fetch | None = None, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._fetch = fetch or fetch_text
        self._clock = clock
        self._known: dict[str, str | RemoteError] = {}

    def texts(self, urls: Sequence[str]) -> dict[str, str | RemoteError]:
        """Return each URL's text, or why there is none. Asked once per program run; blocks, use a thread."""
        missing = [url for url in dict.fromkeys(urls) if url not in self._known]
        if missing:
            with ThreadPoolExecutor(min(4, len(missing))) as pool:
                self._known.update(zip(missing, pool.map(self._text, missing), strict=True))
        return {url: self._known[url] for url in urls}

    def _text(self, url: str) -> str | RemoteError:
        path = self._folder / f"{hashlib.sha256(url.encode()).hexdigest()[:32]}.md"
        try:
            age = self._clock() - path.stat().st_mtime
            kept: str | None = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            age, kept = 0.0, None
        if kept is not None and age < FRESH_SECONDS:
            return kept
        try:
            text = self._fetch(url)
        except RemoteError as error:
            return error if kept is None else kept
        try:
            write_atomically(path, text.encode("utf-8"))
        except OSError as error:
            log.warning("instructions of %s cannot be kept: %s", url, error)
        return text


def fetch_text(url: str) -> str:
    """Fetch a text within ``FETCH_SECONDS``.

    Raises:
        RemoteError: there is none to be had.
    """
    import httpx

    deadline = time.monotonic() + FETCH_SECONDS
    data = b""
    try:
        with httpx.Client(timeout=FETCH_SECONDS, follow_redirects=True) as client, client.stream("GET", url) as answer:
            answer.raise_for_status()
            for piece in answer.iter_bytes():
                data += piece
                if time.monotonic() > deadline:
                    raise RemoteError(f"instructions: {url} took longer than {FETCH_SECONDS:.0f} s.")
                if len(data) >= FETCHED_BYTES:
                    break
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise RemoteError(f"instructions: {url} cannot be fetched: {str(error) or type(error).__name__}.") from None
    return data[:FETCHED_BYTES].decode("utf-8", "ignore")


class InstructionFiles:
    """Finds and reads the instructions of one session. ``wanted`` is the ``instructions`` setting."""

    def __init__(self, folders: Folders, files: FileCache, wanted: Sequence[str], remote: RemoteTexts) -> None:
        self._folders = folders
        self._files = files
        self._wanted = tuple(wanted)
        self._remote = remote

    def load(self, problems: list[str]) -> tuple[Instruction, ...]:
        """Return what holds for the whole session: the user's own, the project's from its root down, the wanted.

        What cannot be read is left out and said in ``problems``. May wait for the network; see ``RemoteTexts``.
        """
        found: dict[str, Instruction] = {}
        for path in self._paths(problems):
            self._add(found, path, problems)
        for url, text in self._remote.texts([item for item in self._wanted if is_url(item)]).items():
            if isinstance(text, RemoteError):
                problems.append(str(text))
            elif text.strip():
                found.setdefault(text, Instruction(url, text.strip()))
        return tuple(found.values())

    def nearby(self, paths: Iterable[str], shown: Collection[str], problems: list[str]) -> tuple[Instruction, ...]:
        """Return the instructions that hold for files of the project and are not ``shown`` yet, outermost first.

        ``paths`` are relative to the project. Ignored directories and other people's code are passed over. What
        cannot be read is said in ``problems``.
        """
        found: dict[str, Instruction] = {}
        root = Path(os.path.realpath(self._folders.project))
        paths = tuple(paths)
        for directory in dict.fromkeys(self._between(root, paths)):
            path = self._first(directory)
            if path is None or self._folders.name(self._folders.project / path.relative_to(root)) in shown:
                continue
            self._add(found, self._folders.project / path.relative_to(root), problems)
        for path, globs in self._rules(problems):
            if self._folders.name(path) not in shown and any(
                glob.fullmatch(name) for name in paths for glob in globs or ()
            ):
                self._add(found, path, problems)
        return tuple(found.values())

    def _between(self, root: Path, paths: Iterable[str]) -> Iterator[Path]:
        """Yield the directories below the root that files are in, outermost first, without those above the session."""
        above = {Path(os.path.realpath(folder)) for folder in self._folders.upward()}
        for name in paths:
            real = Path(os.path.realpath(root / name))
            if not real.is_relative_to(root):
                continue
            rules, directory = IgnoreRules().entering(root), root
            for part in real.relative_to(root).parts[:-1]:
                directory = directory / part
                if part in _FOREIGN or rules.ignored(str(directory), directory=True):
                    break
                rules = rules.entering(directory)
                if directory not in above:
                    yield directory

    def _paths(self, problems: list[str]) -> Iterator[Path]:
        folders = self._folders
        homes = [folders.home / place.home for place in places_of("instructions") if place.home]
        yield from filter(None, [self._first(folders.config), *map(_existing, homes)])
        yield from filter(None, (self._first(folder) for folder in reversed(folders.upward())))
        yield from (path for path, globs in self._rules(problems) if globs is None)
        for pattern in self._wanted:
            if not is_url(pattern):
                matches = sorted(_matching(folders.project, pattern))
                if not matches:
                    problems.append(f"instructions: nothing matches {pattern}.")
                yield from matches[:MAX_FILES]

    def _rules(self, problems: list[str]) -> Iterator[tuple[Path, list[re.Pattern[str]] | None]]:
        """Yield the rules of Cursor and the files that each holds for; None: it always holds.

        https://docs.cursor.com/context/rules. Rules that its model chooses by their description are not read.
        """
        for folder in self._folders.of_project("rules", problems):
            for path in sorted(folder.path.rglob(f"*{_RULE}"))[:MAX_FILES]:
                try:
                    found = self._files.document(path, FILE_BYTES)
                    if found is not None and found[0].text("alwaysApply").lower() == "true":
                        yield path, None
                    elif found is not None and (globs := found[0].fields.get("globs")):
                        # Commas separate globs, but not within braces.
                        wanted = globs if isinstance(globs, list) else re.split(r",(?![^{}]*\})", str(globs))
                        yield path, [compile_glob(str(glob).strip()) for glob in wanted]
                except (DocumentError, ValueError) as error:
                    problems.append(f"{self._folders.name(path)}: {error}.")

    @staticmethod
    def _first(folder: Path) -> Path | None:
        return next(filter(None, (_existing(folder / name) for name in NAMES)), None)

    def _add(self, found: dict[str, Instruction], path: Path, problems: list[str]) -> None:
        """Add a file unless the same text is there already: a link, or a copy for another program."""
        try:
            file = self._files.read(path, FILE_BYTES)
        except LeftOutError as error:
            problems.append(f"{self._folders.name(path)}: {error}.")
            return
        except DocumentError as error:
            problems.append(str(error))
            return
        if file is None or not file.text.strip():
            return
        text = file.text.strip()
        if path.suffix == _RULE:
            text = parse_document(text).body
        if file.cut:
            text += f"\n[The first {FILE_BYTES // 1024} KiB of {file.size:,} bytes; read the file for the rest.]"
        found.setdefault(text, Instruction(self._folders.name(path), text))


def _existing(path: Path) -> Path | None:
    return path if os.path.isfile(path) else None  # noqa: PTH113 - Path.is_file raises where the way is closed


def _matching(project: Path, pattern: str) -> Iterator[Path]:
    """Yield the files a pattern names, relative to the project; ``~`` and absolute ones as they are."""
    import glob

    found = glob.iglob(str(Path(pattern).expanduser()), root_dir=project, recursive=True)  # noqa: PTH207 - any root
    for count, name in enumerate(found):
        if count > MAX_FILES * 20:
            return
        if path := _existing(Path(os.path.normpath(project / name))):
            yield path


log = logging.getLogger(__name__)
