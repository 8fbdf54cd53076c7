"""Between what needs to be allowed and what a view of the sandbox is opened for. Looks at files."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tui_agent.files.sensitive import is_sensitive, rules_programs
from tui_agent.path_checks import is_file
from tui_agent.permission import Change, Permission, PermissionNeed
from tui_agent.sandbox import Sandbox
from tui_agent.sandbox.view import Grants

_PRIVATE = tuple(map(Path, ("/tmp", "/var/tmp", "/run", "/dev", "/proc")))  # noqa: S108 - commands have their own
"""Places that commands in the sandbox have of their own."""


def needs_inside(needs: Iterable[PermissionNeed], sandbox: Sandbox, project: Path) -> Iterator[PermissionNeed]:
    """Yield what a command needs in the sandbox: to run, and what of the places it names the view does not have.

    It is asked about those before, because without them it would find something else and might not even fail.
    """
    project = Path(os.path.realpath(project))
    for need in needs:
        match need.permission:
            case Permission.BASH:
                yield replace(need, sandboxed=True)
            case Permission.EXTERNAL_DIRECTORY:
                if _is_missed(Path(need.detail), sandbox, project):
                    yield need
            case Permission.READ:
                if is_file(project / need.pattern) and sandbox.hides(project / need.pattern, project):
                    yield need
            case Permission.EDIT:
                path = project / need.pattern
                is_out = need.pattern.startswith("/")
                missed = is_out and _is_missed(path.parent, sandbox, project)
                if missed or (not is_out and (rules_programs(Path(need.pattern)) or is_sensitive(path))):
                    yield need
            case _:
                yield need


def _is_missed(path: Path, sandbox: Sandbox, project: Path) -> bool:
    """Whether there is something outside of the project that commands do not see. What the project is in, they do."""
    own = any(path.is_relative_to(place) for place in _PRIVATE) or project.is_relative_to(path)
    return not own and os.path.lexists(path) and not sandbox.shows(path, project)


def grants_of(need: PermissionNeed, project: Path) -> Grants:
    """Return what is opened when a need is allowed."""
    real = Path(os.path.realpath(project / need.pattern))
    one = frozenset({real})
    grants = Grants()
    match need.permission:
        case Permission.NETWORK:
            grants = Grants(hosts=frozenset({need.pattern}))
        case Permission.BASH | Permission.TOOL:
            grants = Grants(sources="sources" in need.changes, repository="repository" in need.changes)
        case Permission.READ if need.secret or is_sensitive(real):
            grants = Grants(secrets=one)
        case Permission.EXTERNAL_DIRECTORY:
            # The directory is what rules are about; what was asked for is what it is opened for.
            grants = Grants(read=frozenset({Path(os.path.realpath(need.detail or need.pattern))}))
        case Permission.EDIT if need.pattern.startswith("/") or "data" in need.changes:
            grants = Grants(write=one)
        case Permission.EDIT if rules_programs(Path(need.pattern)):
            grants = Grants(protected=one)
        case Permission.EDIT if is_sensitive(real):
            grants = Grants(secrets=one, sources=True)
    return grants


def needs_of_grants(
    wanted: Grants, command: str, parts: Sequence[PermissionNeed], project: Path
) -> tuple[PermissionNeed, ...]:
    """Return what has to be allowed for a command, or a tool, to be given what it ended for want of.

    ``parts`` are its needs to run; it has one at least.
    """
    return tuple(_needs_of_grants(wanted, command, parts, Path(os.path.realpath(project))))


def _needs_of_grants(
    wanted: Grants, command: str, parts: Sequence[PermissionNeed], project: Path
) -> Iterator[PermissionNeed]:
    changes: tuple[Change, ...] = (
        *(("sources",) if wanted.sources else ()),
        *(("repository",) if wanted.repository else ()),
    )
    if changes:
        acting = [need for need in parts if not need.harmless] or parts
        yield from (replace(need, sandboxed=True, harmless=False, changes=changes) for need in acting)
    for path in sorted(wanted.protected):
        yield PermissionNeed(Permission.EDIT, _shown(path, project), detail=command)
    for path in sorted(wanted.secrets):
        yield PermissionNeed(Permission.READ, _shown(path, project), detail=command, secret=not is_sensitive(path))
    for path in sorted(wanted.write):
        if path.is_relative_to(project):
            yield PermissionNeed(Permission.EDIT, _shown(path, project), detail=command, changes=("data",))
        else:
            yield PermissionNeed(Permission.EDIT, str(path), detail=command)
    if apart := sorted(wanted.read | {p for p in wanted.write if not p.is_relative_to(project)}):
        from tui_agent.shell.needs import outside

        yield from dict.fromkeys(map(outside, apart))
    for host in sorted(wanted.hosts):
        yield PermissionNeed(Permission.NETWORK, host, detail=command, aliases=(command,))


def _shown(path: Path, project: Path) -> str:
    """Return a path as rules know it: relative to the project inside of it."""
    return path.relative_to(project).as_posix() if path.is_relative_to(project) else path.as_posix()
