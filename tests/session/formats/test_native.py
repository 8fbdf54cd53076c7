"""What leaves as JSON lines comes back identically, and a file that is wrong leaves nothing behind."""

import base64
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.support.entry_strategies import paths
from tests.support.stores import open_store
from tests.support.texts import answered, said
from tests.support.thoroughness import examples
from tui_agent.session.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    ImagePart,
    TextPart,
    ToolMetadata,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
)
from tui_agent.session.errors import SessionHeld
from tui_agent.session.formats import native
from tui_agent.session.formats.copies import copies_of, copy_of
from tui_agent.session.formats.importing import ImportChange, import_file
from tui_agent.session.formats.reading import ImportRefused
from tui_agent.session.ids import now
from tui_agent.session.session import Session
from tui_agent.session.store import Store


def fill(store: Store, session: Session) -> None:
    """Two branches, a subagent's session, blobs, labels, moves."""
    child = store.create_session("/project", title="look", parent=(session.id, 2), agent="general")
    Session(store, child.id, estimate=lambda _entry: 3).append(said("look around"))
    picture = store.put_blob(b"\x89PNG not really")
    full = store.put_blob(b"the whole output\n" * 100)
    first = session.append(
        UserEntry(
            parts=(TextPart(text="half \ud83d pair"), ImagePart(blob=picture, mime="image/png"))
        )
    )
    session.append(answered("Looking.", ("a", "task", "{not json")))
    result = ToolResultEntry(
        call_id="a",
        tool="task",
        status=ToolStatus.COMPLETED,
        output="shortened",
        full_output=full,
        metadata=ToolMetadata(session=child.id, diff="-a\n+b\n"),
    )
    left = session.append(result)
    session.move(first.id)
    session.append(BranchSummaryEntry(summary="went wrong", from_id=left.id))
    session.append(answered("Another way."))
    session.append(
        CompactionEntry(
            summary="so far", first_kept_id=5, tokens_before=9, tokens_after=4, trigger="manual"
        )
    )
    session.undo()
    session.redo()
    session.label(first.id, "start")
    session.add_cost(0.5)
    session.set_title("Umlauts äöü")


def exported(store: Store, session_id: str, path: Path) -> Path:
    with path.open("w", encoding="utf-8", errors="surrogatepass") as file:
        native.write(copies_of(store, session_id), file.write)
    return path


def everything(store: Store, session_id: str) -> object:
    copy = copy_of(store, session_id, whole=True)
    return (
        copy.info,
        copy.entries,
        copy.leaf,
        copy.last_id,
        copy.labels,
        copy.moves,
        sorted(copy.blobs()),
    )


@pytest.fixture
def other(tmp_path: Path):
    with Store(tmp_path / "other" / "sessions.db") as store:
        yield store


def take(store: Store, path: Path, **options):
    return import_file(store, path, estimate=lambda _entry: 1, **options)


@settings(
    max_examples=examples(40),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)
@given(paths())
def test_any_entries_survive(tmp_path_factory, drawn):
    folder = tmp_path_factory.mktemp("any")
    with open_store(folder / "a.db") as store, open_store(folder / "b.db") as other:
        session = Session(store, store.create_session("/p").id, estimate=lambda _entry: 7)
        session.append_many(drawn)
        path = exported(store, session.id, folder / "a.jsonl")
        take(other, path)
        before, after = (
            copy_of(store, session.id, whole=True),
            copy_of(other, session.id, whole=True),
        )
        assert after.entries == before.entries


def test_a_session_that_went_on_elsewhere_is_brought_up_to_date(store, session, other, tmp_path):
    fill(store, session)
    take(other, exported(store, session.id, tmp_path / "a.jsonl"))
    session.append(said("one more"))
    longer = exported(store, session.id, tmp_path / "b.jsonl")
    assert take(other, longer)[0].came is ImportChange.MORE
    assert everything(other, session.id)[1:3] == everything(store, session.id)[1:3]

    mine = Session(other, session.id, estimate=lambda _entry: 1)
    mine.hold()
    session.append(said("and another"))
    with pytest.raises(SessionHeld):
        take(other, exported(store, session.id, tmp_path / "c.jsonl"))
    mine.append(said("something else"))
    mine.release()
    copy = take(other, tmp_path / "c.jsonl")[0]
    assert copy.came is ImportChange.COPY
    assert copy.session_id != session.id
    assert Session(other, session.id, estimate=lambda _entry: 1).path()[-1].text == "something else"
    assert take(other, tmp_path / "c.jsonl")[0].came is ImportChange.KNOWN, "the copy is known, too"


def lines_of(store: Store, session: Session, path: Path) -> list[dict]:
    fill(store, session)
    return [json.loads(line) for line in exported(store, session.id, path).read_text().splitlines()]


def entry_line(lines, entry_id):
    return next(
        line for line in lines if line["type"] == "entry" and line["entry"]["id"] == entry_id
    )


WRONG = {
    "own parent": lambda lines: entry_line(lines, 2)["entry"].update(parent_id=2),
    "number twice": lambda lines: entry_line(lines, 2)["entry"].update(id=1),
    "huge number": lambda lines: entry_line(lines, 6)["entry"].update(id=2**40),
    "negative tokens": lambda lines: entry_line(lines, 2)["entry"].update(tokens=-4),
    "entry after the year 9999": lambda lines: entry_line(lines, 2)["entry"].update(
        created_at=2**52
    ),
    "line without a type": lambda lines: lines[1].pop("type"),
    "line after the end": lambda lines: lines.append(lines[1]),
    "session after the end": lambda lines: lines.append(lines[0]),
    "unknown kind": lambda lines: entry_line(lines, 2)["entry"].update(kind="spell"),
    "wrong type": lambda lines: entry_line(lines, 1)["entry"].update(parts="text"),
    "label of nothing": lambda lines: next(
        line for line in lines if line["type"] == "label"
    ).update(entry=99),
    "blob that is another": lambda lines: next(
        line for line in lines if line["type"] == "blob"
    ).update(data=base64.b64encode(b"evil").decode()),
    "newer version": lambda lines: lines[0].update(version=99),
    "time that is a list": lambda lines: lines[0].update(created_at=[]),
    "time after the year 9999": lambda lines: lines[0].update(updated_at=2**52),
    "text that is such a time": lambda lines: lines[0].update(
        created_at="9999-12-31T23:59:59-12:00"
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_named_with_its_line_and_nothing_is_kept(
    store, session, other, tmp_path, wrong
):
    lines = lines_of(store, session, tmp_path / "a.jsonl")
    WRONG[wrong](lines)
    bad = tmp_path / "bad.jsonl"
    bad.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(ImportRefused, match=r"bad\.jsonl, line \d+: "):
        take(other, bad)
    assert other.sessions() == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param('{"a": ' * 100_000 + "\n{}\n", "nested too deeply", id="deep"),
        ('{"type": "session", "format": "tui-agent"\n{}\n', "not JSON"),
        ('{"a": 1e999, "b": NaN}\n{}\n', "JSON can't be read"),
        pytest.param(
            '{"n": ' + "9" * 10_000 + "}\n{}\n", "JSON can't be read", id="endless number"
        ),
        ("[1, 2]\n{}\n", "JSON object"),
        ("\x00\x01\x02", "none of the known formats"),
        ("", "none of the known formats"),
        (
            '{"type": "session", "format": "tui-agent", "version": "\\u001b[2J"}\n{}\n',
            "“version” must be a number",
        ),
    ],
)
def test_nonsense_is_refused_in_words_that_act_on_no_terminal(other, tmp_path, text, said):
    path = tmp_path / "bad\x1b]0;owned\x07.jsonl"
    path.write_text(text)
    with pytest.raises(ImportRefused, match=said) as refused:
        take(other, path)
    assert "\x1b" not in refused.value.message


def test_a_file_that_is_cut_off_or_lost_a_line_is_noticed(store, session, other, tmp_path):
    fill(store, session)
    whole = exported(store, session.id, tmp_path / "a.jsonl").read_bytes()
    cut = tmp_path / "cut.jsonl"
    lines = whole.splitlines(keepends=True)
    for part in (
        b"".join(line for line in lines if b'"label"' not in line),
        whole[: whole.index(b"Another way")],
    ):
        cut.write_bytes(part)
        with pytest.raises(ImportRefused, match="not complete"):
            take(other, cut)
    assert other.sessions() == []
    assert take(other, cut, skip_damaged=True)[0].entries == 4


@pytest.mark.parametrize("wrong", ["{broken", '{"type": "entry", "entry": {"id": 2}}', "{}"])
def test_a_damaged_entry_of_a_file_costs_only_itself_if_wanted(
    store, session, other, tmp_path, wrong
):
    session.append_many([said("one"), answered("two"), said("three")])
    session.move(1)
    session.append(said("another branch"))
    session.move(2)
    session.append(said("below two"))
    session.label(2, "lost with its entry")
    path = exported(store, session.id, tmp_path / "a.jsonl")
    lines = path.read_text().splitlines()
    lines[2] = wrong
    path.write_text("".join(f"{line}\n" for line in lines))
    with pytest.raises(ImportRefused, match="line 3: "):
        take(other, path)
    [imported] = take(other, path, skip_damaged=True)
    entries = copy_of(other, imported.session_id, whole=True).entries
    assert [(entry.id, entry.parent_id) for entry in entries] == [(1, None), (3, 1), (4, 1), (5, 1)]
    replaced = "link to a damaged entry (replaced by a link to the entry before it)"
    assert replaced in imported.left_out
    assert imported.left_out["invalid line"] + len(imported.damaged) == 3, "entry, label and move"


@pytest.mark.parametrize("labelled", [False, True])
def test_entries_of_a_session_whose_first_line_is_damaged_go_to_no_other(
    store, session, other, tmp_path, *, labelled: bool
):
    child = Session(
        store, store.create_session("/", parent=(session.id, 1)).id, estimate=lambda _entry: 1
    )
    child.append_many([said("of the child"), answered("answered"), said("and more")])
    session.append(said("one"))
    metadata = ToolMetadata(session=child.id)
    result = ToolResultEntry(
        call_id="a", tool="task", status=ToolStatus.COMPLETED, output="", metadata=metadata
    )
    session.append(result)
    if labelled:
        session.label(1, "start")
    path = exported(store, session.id, tmp_path / "a.jsonl")
    lines = path.read_text().splitlines()
    lines[3 + labelled] = "{broken"
    path.write_text("".join(f"{line}\n" for line in lines))
    [imported] = take(other, path, skip_damaged=True)
    assert imported.entries == 2
    assert imported.left_out["line of a session whose first line is damaged"] == 3


def test_an_entry_of_a_clock_that_was_ahead_is_taken_in_with_todays_time(
    store, session, other, tmp_path
):
    session.append(said("one"))
    path = exported(store, session.id, tmp_path / "a.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[1]["entry"]["created_at"] = 2**45
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    [imported] = take(other, path)
    [entry] = copy_of(other, imported.session_id, whole=True).entries
    assert entry.created_at <= now()
    assert take(other, path)[0].came is ImportChange.KNOWN


@pytest.mark.parametrize("place", ["kind", "action", "field"])
def test_control_characters_of_a_file_reach_no_message(store, session, other, tmp_path, place: str):
    evil = "\x1b]0;owned\x07\nx"
    lines = lines_of(store, session, tmp_path / "a.jsonl")
    match place:
        case "kind":
            entry_line(lines, 1)["entry"]["kind"] = evil
        case "action":
            lines.insert(-1, {"type": "move", "action": evil})
        case _:
            entry_line(lines, 1)["entry"][evil] = 1
    path = tmp_path / "evil.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(ImportRefused, match="owned") as refused:
        take(other, path)
    assert refused.value.message.isprintable()


def test_what_hangs_below_a_damaged_entry_leaves_too(store, session, other, tmp_path):
    session.append_many([said("one"), answered("two"), said("three")])
    with store.writer() as connection:
        connection.execute("UPDATE bodies SET body = 'broken' WHERE key % 4294967296 = 2")
    take(other, exported(store, session.id, tmp_path / "a.jsonl"))
    path = Session(other, session.id, estimate=lambda _entry: 1).path()
    assert [entry.text for entry in path] == ["one", "three"]


def test_a_store_is_taken_in_with_all_its_sessions(store, session, other):
    fill(store, session)
    second = Session(store, store.create_session("/work").id, estimate=lambda _entry: 1)
    second.append(said("another task"))
    second.set_title("Another task")
    store.create_session("/empty")
    came = {one.session_id: one.came for one in take(other, store.path)}
    child = next(info for info in came if info not in {session.id, second.id})
    assert set(came.values()) == {ImportChange.NEW}
    for session_id in (session.id, second.id, child):
        assert everything(other, session_id) == everything(store, session_id)
    assert {one.came for one in take(other, store.path)} == {ImportChange.KNOWN}
    assert {one.came for one in take(store, store.path)} == {ImportChange.KNOWN}, (
        "a store knows itself"
    )
    other.delete(session.id)
    take(other, store.path)
    assert other.session(session.id).title == "Umlauts äöü", (
        "importing a deleted one brings it back"
    )
    second.append(said("one more"))
    assert {one.came for one in take(other, store.path)} == {ImportChange.KNOWN, ImportChange.MORE}
    assert len(other.sessions()) == 2


def test_a_store_that_is_read_is_not_touched(store, session, other, tmp_path):
    fill(store, session)
    store.close()
    before = {path.name: path.read_bytes() for path in store.path.parent.glob("*.db*")}
    store.path.parent.chmod(0o500)
    try:
        take(other, store.path)
    finally:
        store.path.parent.chmod(0o700)
    assert {path.name: path.read_bytes() for path in store.path.parent.glob("*.db*")} == before


def test_one_damaged_session_of_a_store_keeps_out_no_other(store, session, other):
    fill(store, session)
    second = Session(store, store.create_session("/work").id, estimate=lambda _entry: 1)
    second.append(said("another task"))
    with store.writer() as connection:
        connection.execute(
            "UPDATE bodies SET body = '{' WHERE rowid IN (SELECT max(rowid) FROM bodies)"
        )
    came = take(other, store.path)
    assert session.id in {one.session_id for one in came}


@pytest.mark.parametrize("cut", [100, 4_096, 10_000])
def test_a_store_that_is_cut_is_refused_in_a_sentence(store, session, other, tmp_path, cut):
    fill(store, session)
    store.close()
    damaged = tmp_path / "cut.db"
    damaged.write_bytes(store.path.read_bytes()[:cut])
    with pytest.raises(ImportRefused, match=r"cut\.db"):
        take(other, damaged)
    assert other.sessions() == []


def test_an_export_of_long_ago_with_half_a_surrogate_pair_is_taken_in(
    store, session, other, tmp_path
):
    session.append_many([said("HALF 1"), said("HALF 2")])
    path = exported(store, session.id, tmp_path / "old.jsonl")
    path.write_text(path.read_text().replace("HALF", "half \\ud83d"))
    [imported] = take(other, path)
    texts = [
        entry.parts[0].text for entry in copy_of(other, imported.session_id, whole=True).entries
    ]
    assert texts == ["half \ufffd 1", "half \ufffd 2"]
    assert take(other, path)[0].came is ImportChange.KNOWN
