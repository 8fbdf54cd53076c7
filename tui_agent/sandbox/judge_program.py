"""The main program of the judge, the process that decides which changes by commands are kept.

It finds a command's changes, lets ``change_policy`` decide about each, moves allowed changes into
the project and discards the others. It runs in the sandbox and sees only one project, the layers
over it, and programs, so a malicious file that it reads can't harm anything else. Each line of its
standard input is a request, a JSON object whose ``do`` names a method of `Judge`; each answer is a
line of JSON.
"""

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import field, fields
from pathlib import Path
from typing import Any

from tui_agent.files.ignore import IgnoreRules
from tui_agent.lazy import dataclass
from tui_agent.sandbox.change_policy import (
    DirectChanges,
    JudgedChanges,
    KnownPaths,
    LossReason,
    ProjectFacts,
    judge,
)
from tui_agent.sandbox.layer import (
    MAX_CHANGES,
    ChangeKind,
    Layer,
    LayerChange,
    changes_in,
    discard,
    keep,
    overtaken,
    publish,
)
from tui_agent.sandbox.layout import Layout, Mount, MountKind
from tui_agent.sandbox.project_copy import ProjectCopy
from tui_agent.sandbox.view import Grants, View, Writes

MAX_NAMES = 20
"""Maximum number of discarded changes that an answer of the judge names.

The others are only counted.
"""


def grants_from(row: Mapping[str, Any]) -> Grants:
    """Return the grants in a request or an answer; ``row`` is in the form of `grants_row`."""
    return Grants(
        sources=row.get("sources") is True,
        repository=row.get("repository") is True,
        protected=frozenset(map(Path, row.get("protected", ()))),
        secrets=frozenset(map(Path, row.get("secrets", ()))),
        read=frozenset(map(Path, row.get("read", ()))),
        write=frozenset(map(Path, row.get("write", ()))),
        hosts=frozenset(map(str, row.get("hosts", ()))),
    )


def grants_row(grants: Grants) -> dict[str, Any]:
    """Return grants as a JSON object of booleans and sorted lists, for a request or an answer."""
    row: dict[str, Any] = {}
    for one in fields(grants):
        value = getattr(grants, one.name)
        row[one.name] = value if isinstance(value, bool) else sorted(map(str, value))
    return row


@dataclass
class _Case:
    """One command's changes on a layer, remembered between the requests about them.

    ``sources`` are the allowed changes, which the request "keep" will move into the project.
    """

    layer: Layer
    changes: list[LayerChange]
    sources: list[LayerChange] = field(default_factory=list)


class Judge:
    """Answers the requests about one project. Each public method handles one kind of request."""

    def __init__(self, project: Path) -> None:
        self._project = project
        self._cases: dict[str, _Case] = {}
        self._copies: dict[str, ProjectCopy] = {}
        self._watched: dict[str, DirectChanges] = {}

    def ready(self, _asked: Mapping[str, Any]) -> dict[str, Any]:
        return {}

    def refresh(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Bring the project's copy at ``place`` up to date, or create the copy.

        For ``parts``, ``left_out`` and ``bounded`` see `ProjectCopy.refresh`. Answers with the
        bounded paths that are too ``large`` to copy, relative to the project.
        """
        place = asked["place"]
        copy = self._copies.get(place)
        if copy is None:
            copy = ProjectCopy(Layer(self._project, Path(place), is_copy=True))
            self._copies[place] = copy
        copy.refresh(asked["parts"], asked["left_out"], asked["bounded"])
        return {"large": sorted(copy.large)}

    def judge(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Judge the changes in the layer at ``place``, and apply the verdict.

        If the command has ``ended``, build outputs and ignored new files are moved into the
        project, and changes that aren't allowed are discarded. Allowed changes to source files wait
        for the request `keep`. Before it ends, outputs are only copied, and nothing is discarded.

        If ``known`` is None and paths outside output directories were changed or deleted, the
        answer has only ``needs``, the list of these paths: send the request again, with what git
        and the checkpoints know about them in ``known``. Every other answer has the form that
        `verdict_from` reads.
        """
        mounts = tuple(Mount(Path(place), MountKind(put)) for place, put in asked["mounts"])
        rules = IgnoreRules.of_lines(asked["rules"], self._project)
        known = KnownPaths(
            **{name: frozenset(paths) for name, paths in (asked["known"] or {}).items()}
        )
        facts = ProjectFacts(
            self._project, rules, Layout(self._project, self._project, mounts), known
        )
        case = self._cases.pop(asked["place"], None)
        if case is None or asked["known"] is None:
            try:
                case = self._looked_at(asked, facts)
            except RecursionError:
                deep = LayerChange("directories nested too deeply", ChangeKind.NEW)
                return _answer(JudgedChanges(lost={LossReason.LIMIT: [deep]}))
        if len(case.changes) > MAX_CHANGES:
            return _answer(JudgedChanges(lost={LossReason.LIMIT: case.changes[:MAX_CHANGES]}))
        if asked["known"] is None and (needs := _unknown(case.changes)):
            self._cases[asked["place"]] = case
            return {"needs": needs}
        view = View(Writes(asked["writes"]), grants_from(asked["grants"]))
        copy = self._copies.get(asked["place"])
        conflicts: list[LayerChange] = []
        if copy is not None:
            conflicts = copy.conflicts(case.changes)
        elif asked["ended"]:
            conflicts = overtaken(case.layer, case.changes)
        judged = judge(case.changes, view, facts, {change.path for change in conflicts})
        if not asked["ended"]:
            publish(case.layer, judged.outputs)
            if copy is not None:
                copy.record_applied(judged.outputs)
            return _answer(judged)
        lost = [change for changes in judged.lost.values() for change in changes]
        discard(case.layer, [change for change in lost if change.inside])
        keep(case.layer, judged.outputs)
        if judged.sources:
            case.sources = judged.sources
            self._cases[asked["place"]] = case
        return _answer(judged)

    def _looked_at(self, asked: Mapping[str, Any], facts: ProjectFacts) -> _Case:
        place = asked["place"]
        layer = Layer(self._project, Path(place), asked["is_copy"])
        made = None
        if layer.is_copy:
            made = self._copies[place].made

        def is_ignored(path: str) -> bool:
            return facts.ignored(path, directory=True)

        return _Case(layer, changes_in(layer, frozenset(asked["outputs"]), is_ignored, made))

    def keep(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Move the source files that `judge` allowed in the layer at ``place`` into the project.

        Answers with the files that could not be moved, as ``failed``.
        """
        case = self._cases.pop(asked["place"])
        failed = keep(case.layer, case.sources)
        return {"failed": _files(failed)}

    def watch(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Record, as ``name``, the dangerous entries in directories that a command changes directly.

        Send it before the command starts: `tidy` later renames or removes only new entries.
        Dangerous entries are, for example, files that other programs run or read as settings,
        repositories, and links that lead outside. In the answer, ``linked`` are the output
        directories that contain a file with a hard link outside all output directories.
        """
        watched = DirectChanges(
            self._project,
            grants_from(asked["grants"]),
            repositories=tuple(map(Path, asked["repositories"])),
            outputs=tuple(map(Path, asked["outputs"])),
            besides=tuple(map(Path, asked["besides"])),
            in_place=asked["in_place"],
        )
        found = watched.dangerous_entries()
        watched.before = found.planted | found.parts
        self._watched[asked["name"]] = watched
        return {"linked": sorted(map(str, found.linked))}

    def tidy(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Rename or remove the dangerous entries that a command has made since the watch began.

        ``name`` is the name in the request "watch", which is forgotten if the command has
        ``ended``. Answers with the paths that were renamed or removed (``aside``), and with
        dangerous new ones that stay because git made them (``kept``).
        """
        if asked["ended"]:
            watched = self._watched.pop(asked["name"])
        else:
            watched = self._watched[asked["name"]]
        aside, kept = watched.set_aside_dangerous(asked["tracked"])
        return {"aside": _named(aside), "kept": _named(kept)}


def _unknown(changes: list[LayerChange]) -> list[str]:
    """Return the changed and deleted paths that are outside output directories."""
    return [
        change.path for change in changes if change.kind is not ChangeKind.NEW and not change.output
    ]


def _answer(judged: JudgedChanges) -> dict[str, Any]:
    lost = {}
    for reason in LossReason:
        changes = judged.lost.get(reason, [])
        if changes:
            lost[reason.value] = _named(_files(changes) or [change.path for change in changes])
    return {
        "sources": [change.path for change in judged.sources],
        "lost": lost,
        "wanted": grants_row(judged.wanted),
        "keeps": bool(judged.sources),
    }


def _files(changes: list[LayerChange]) -> list[str]:
    return [change.path for change in changes if not change.directory]


def _named(names: list[str]) -> dict[str, Any]:
    return {"names": names[:MAX_NAMES], "count": len(names)}


def main() -> None:
    judge_of = Judge(Path(sys.argv[1]))
    methods: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
        "ready": judge_of.ready,
        "refresh": judge_of.refresh,
        "judge": judge_of.judge,
        "keep": judge_of.keep,
        "watch": judge_of.watch,
        "tidy": judge_of.tidy,
    }
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        try:
            answer = methods[asked["do"]](asked)
        except KeyError:
            answer = {"error": "the judge process was restarted and doesn't know this command"}
        except Exception as error:  # noqa: BLE001 - the caller reports it
            answer = {"error": f"{type(error).__name__}: {error}"[:400]}
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
