"""A redacted secret is in no byte of the store, and the tree is as it was without it."""

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.entry_strategies import paths
from tests.support.request_validator import validate
from tests.support.stores import open_store
from tests.support.texts import answered, said
from tests.support.thoroughness import examples
from tui_agent.context.projection import ModelTraits, project
from tui_agent.secret_detector import REMOVED
from tui_agent.secret_forms import SecretForms
from tui_agent.session.entries import (
    AssistantEntry,
    BookkeepingEntry,
    BranchSummaryEntry,
    CheckpointEntry,
    CompactionEntry,
    Entry,
    EntryAdapter,
    FileChange,
    FilePart,
    ImagePart,
    PinnedText,
    ReasoningPart,
    ShellEntry,
    StateText,
    SummaryDetails,
    TextPart,
    ToolCallPart,
    ToolMetadata,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
)
from tui_agent.session.errors import EntryNotFound
from tui_agent.session.records import DraftText, Unsent
from tui_agent.session.redacting import DROPPED_IMAGE, Removal, emptied, find, remove
from tui_agent.session.rows import blobs_of, text_of
from tui_agent.session.session import Session
from tui_agent.session.store import Store

SECRET = 'Zq9"tr0ub\\adour&3\n<ß>'
TEXT_FIELDS = frozenset({"text", "output", "summary", "command", "title", "blob", "opening"})

LEFT_FIELDS = frozenset(
    {"kind", "type", "call_id", "tool", "model", "status", "finish", "trigger", "synthetic"}
)
"""Names of the texts that stay in an entry whose content is removed."""

secrets = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x2FF, exclude_categories=("Cs", "Cc")),
    min_size=4,
    max_size=30,
).map(lambda text: f"Zq{text}9x")


def estimate(entry: Entry) -> int:
    return len(text_of(entry)) + 1


def removal(secret: str, whole: tuple[str, int] | None = None) -> Removal:
    return Removal(SecretForms([secret]), estimate, whole)


def with_secret(value: object, secret: str, draw: st.DataObject) -> object:
    """Put the secret into some of the texts of a dumped entry."""
    if isinstance(value, dict):
        found = {key: with_secret(item, secret, draw) for key, item in value.items()}
        for key, item in found.items():
            if key == "arguments" and draw.draw(st.booleans()):
                found[key] = json.dumps({"command": f"use {secret}"})
            elif key in TEXT_FIELDS and isinstance(item, str) and draw.draw(st.booleans()):
                found[key] = f"{item[:5]}{secret}{item[5:]}"
        if value.get("type") == "image":
            found["blob"] = value["blob"]
        return found
    if isinstance(value, list | tuple):
        return [with_secret(item, secret, draw) for item in value]
    return value


def bytes_with(secret: str, place: Path) -> list[str]:
    """Return the files below a place that hold a secret, plain or in JSON, once or twice."""
    once = {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    twice = {json.dumps(text, ensure_ascii=False)[1:-1] for text in once}
    forms = {text.encode() for text in once | twice}
    return [
        path.name
        for path in place.rglob("*")
        if path.is_file() and any(form in path.read_bytes() for form in forms)
    ]


@settings(max_examples=examples(15))
@given(path=paths(), secret=secrets, data=st.data())
def test_it_is_in_no_byte_and_the_tree_stays_valid(
    path: list[Entry], secret: str, data: st.DataObject
) -> None:
    with TemporaryDirectory() as name:
        home = Path(name)
        with open_store(home / "sessions.db") as store:
            session = Session(store, store.create_session("/p").id, estimate=estimate)
            for entry in path:
                dumped = with_secret(entry.model_dump(), secret, data)
                session.append(EntryAdapter.validate_python(dumped))
            shape = [(entry.id, entry.parent_id, entry.kind) for entry in session.path()]
            remove(store, removal(secret))
            store.rewrite()
            assert not find(store, removal(secret))
            again = Session(store, session.id, estimate=estimate)
            kept = again.path()
            assert [(entry.id, entry.parent_id, entry.kind) for entry in kept] == shape
            validate(project(kept, ModelTraits("test/model")))
            hits = store.search(secret, limit=5)
            assert all(secret not in hit.snippet for hit in hits)
            again.append(said("go on"))
        assert not bytes_with(secret, home)


@given(path=paths(), secret=secrets, data=st.data())
def test_an_emptied_entry_has_none_of_its_texts(
    path: list[Entry], secret: str, data: st.DataObject
) -> None:
    for entry in path:
        dumped = with_secret(entry.model_dump(), secret, data)
        marked = EntryAdapter.validate_python(dumped)
        try:
            empty = emptied(marked)
        except EntryNotFound:
            assert isinstance(entry, BookkeepingEntry)
            continue
        assert empty.kind == entry.kind
        assert json.dumps(secret)[1:-1] not in json.dumps(empty.model_dump())
        assert REMOVED in text_of(empty)


def strings_in(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield each text of a dumped entry with the name of its field."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from strings_in(item, key)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from strings_in(item, name)
    elif isinstance(value, str):
        yield name, value


PICTURE = ImagePart(blob="a" * 64, mime="image/png", width=8, height=6, path="private.png")
DETAILS = SummaryDetails(
    read_files=("private.py",),
    modified_files=("private.py",),
    anchors=("private",),
    user_messages=("#1 private",),
    rules=("private",),
    rules_known=("private",),
    rules_lost=1,
    untold=("private",),
    pinned=(PinnedText(id=1, text="private"),),
    state=(StateText(tool="todo", name="private", text="private"),),
    file_ids={"private.py": 1},
    hook="private",
    remembered=("private",),
)
FILLED: list[Entry] = [
    UserEntry(
        id=1,
        parts=(
            TextPart(text="private"),
            FilePart(path="private.py", text="private"),
            PICTURE,
        ),
    ),
    ShellEntry(id=2, command="private", output="private"),
    AssistantEntry(
        id=3,
        parts=(
            ReasoningPart(text="private", blob='{"signature": "private"}', model="m"),
            TextPart(text="private"),
            ToolCallPart(call_id="c", tool="read", arguments='{"path": "private"}'),
        ),
        model="m",
        error="private",
    ),
    ToolResultEntry(
        id=4,
        call_id="c",
        tool="read",
        status=ToolStatus.COMPLETED,
        output="private",
        attachments=(PICTURE,),
        full_output="b" * 64,
        title="private",
        metadata=ToolMetadata(
            path="private.py",
            diff="private",
            read_files=("private.py",),
            modified_files=("private.py",),
            branch=9,
        ),
    ),
    CompactionEntry(
        id=5,
        summary="private",
        first_kept_id=1,
        tokens_before=9,
        tokens_after=1,
        trigger="manual",
        item='{"private": 1}',
        instructions="private",
        details=DETAILS,
    ),
    BranchSummaryEntry(id=6, summary="private", from_id=1, details=DETAILS),
]
"""An entry of each kind that has content, with a text in each field that can hold one."""


@example(path=FILLED)
@given(path=paths())
def test_of_an_emptied_entry_only_what_holds_the_tree_together_is_left(path: list[Entry]) -> None:
    for entry in path:
        if isinstance(entry, BookkeepingEntry):
            continue
        left = {
            name
            for name, text in strings_in(emptied(entry).model_dump())
            if text not in ("", REMOVED, "{}")
        }
        assert left <= LEFT_FIELDS
        assert not blobs_of(emptied(entry))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def store(home: Path) -> Store:
    with open_store(home / "sessions.db") as opened:
        yield opened


def test_blobs_titles_labels_drafts_and_forks_are_cleaned(home: Path, store: Store) -> None:
    session = Session(store, store.create_session("/p").id, estimate=estimate)
    first = session.append(said(f"my key is {SECRET}"))
    full = store.put_blob(f"line\n{SECRET}\nline".encode())
    wide = store.put_blob(SECRET.encode("utf-16-le"))
    image = store.put_blob(f"KEY={SECRET}".encode())
    session.append(answered("Looking.", ("a", "bash", json.dumps({"command": SECRET}))))
    result = ToolResultEntry(
        call_id="a",
        tool="bash",
        status=ToolStatus.COMPLETED,
        output="shortened",
        full_output=full,
        title=SECRET,
    )
    session.append(result)
    session.append(result.model_copy(update={"full_output": wide, "call_id": "b"}))
    changed = FileChange(path=".env", before=None, after=image, after_mode=0o600)
    session.append(CheckpointEntry(files=(changed,)))
    session.set_title(f"about {SECRET}")
    session.label(first.id, SECRET)
    store.keep_unsent("/p", Unsent(SECRET, (SECRET,)))
    session.save_draft(DraftText(text=SECRET, reasoning=SECRET))
    fork = store.fork(session.id, session.leaf)
    tokens = first.tokens
    finding = find(store, removal(SECRET))
    assert finding.entries == {session.id: 4, fork.id: 4}
    assert finding.blobs == 3
    remove(store, removal(SECRET))
    store.rewrite()
    for session_id in (session.id, fork.id):
        again = Session(store, session_id, estimate=estimate)
        question, _call, shown, _wide, checkpoint = again.path()
        assert question.text == f"my key is {REMOVED}"
        assert question.tokens < tokens
        assert REMOVED in question.preview
        assert (store.blob(shown.full_output) or b"").startswith(b"line\n***")
        [file] = checkpoint.files
        assert (file.after, file.no_after) == (None, DROPPED_IMAGE)
    store.close()
    assert not bytes_with(SECRET, home)
    everything = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert SECRET.encode("utf-16-le") not in everything
    assert b"tr0ub" not in everything


def test_signed_reasoning_goes_as_a_whole(store: Store) -> None:
    session = Session(store, store.create_session("/p").id, estimate=estimate)
    session.append(said("hello"))
    thought = ReasoningPart(text="hm", blob='{"signature": "abc"}', model="m")
    session.append(AssistantEntry(parts=(thought, TextPart(text=SECRET)), model="m"))
    session.append(AssistantEntry(parts=(thought, TextPart(text="fine")), model="m"))
    remove(store, removal(SECRET))
    _said, cleaned, untouched = Session(store, session.id, estimate=estimate).path()
    assert cleaned.parts[0].blob is None
    assert cleaned.text == REMOVED
    assert untouched.parts[0].blob == thought.blob


def test_a_block_is_emptied_with_its_full_output_and_its_pair_stays(
    home: Path, store: Store
) -> None:
    session = Session(store, store.create_session("/p").id, estimate=estimate)
    session.append(said("run it"))
    session.append(answered("Running.", ("a", "bash", "{}")))
    full = store.put_blob(b"private words of an output")
    result = session.append(
        ToolResultEntry(
            call_id="a",
            tool="bash",
            status=ToolStatus.COMPLETED,
            output="private words",
            full_output=full,
        )
    )
    fork = store.fork(session.id, result.id)
    nothing = SecretForms([])
    whole = Removal(nothing, estimate, (session.id, result.id))
    assert find(store, whole).entries == {session.id: 1, fork.id: 1}
    remove(store, whole)
    store.rewrite()
    for session_id in (session.id, fork.id):
        path = Session(store, session_id, estimate=estimate).path()
        assert path[-1].output == REMOVED
    assert store.blob(full) is None
    validate(project(path, ModelTraits("test/model")))
    assert not bytes_with("private words", home)
    with pytest.raises(EntryNotFound):
        remove(store, Removal(nothing, estimate, (session.id, 99)))
