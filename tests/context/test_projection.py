"""Path in, request out: what a model is sent, and that it is sent the same way again."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.entry_strategies import CACHE_BREAKING, MODELS, active, grown_paths, paths
from tests.support.numbered import MODEL, answer, call, compaction, edit, prune, result, user
from tests.support.request_validator import InvalidRequestError, validate
from tests.support.thoroughness import thorough
from tui_agent.context.context_status import Standing, together
from tui_agent.context.context_status_cache import standings
from tui_agent.context.projection import ModelTraits, project
from tui_agent.context.request import (
    ContentText,
    ImageRef,
    Message,
    ModelRequest,
    RequestToolCall,
    request_bytes,
)
from tui_agent.context.templates import Templates
from tui_agent.context.view import EntryState, resolve
from tui_agent.resources import prompt
from tui_agent.session.effort import Effort
from tui_agent.session.entries import (
    INTERRUPTED_OUTPUT,
    AssistantEntry,
    ContextEditEntry,
    EffortChangeEntry,
    Entry,
    FilePart,
    ImagePart,
    ModeChangeEntry,
    ModelChangeEntry,
    PinnedText,
    ReasoningPart,
    ShellEntry,
    StateText,
    SystemEntry,
    TextPart,
    ToolMetadata,
    ToolSchema,
    UserEntry,
)

TRAITS = ModelTraits(MODEL)
IMAGE = ImagePart(blob="a" * 64, mime="image/png", width=640, height=480, path="shot.png")
HEAD = SystemEntry(
    id=1,
    blocks=("You are an agent.", "Directory: /home/me", "Rules"),
    tools=(ToolSchema(name="read", description="Read", parameters={"type": "object"}),),
    model=MODEL,
)


def shapes(path, traits=TRAITS, templates=None):
    """Return the messages after the head as (role, text)."""
    request = project(path, traits, templates)
    return [
        (message.role, message.text) for message in request.messages if message.role != "system"
    ]


def test_the_head_is_system_messages_and_what_opens_the_conversation():
    request = project([HEAD, user(2)], TRAITS)

    assert [m.text for m in request.messages[:2]] == [
        "You are an agent.",
        "Directory: /home/me\n\nRules",
    ]
    assert request.tools == HEAD.tools
    assert request.model == MODEL

    head = SystemEntry(
        id=1,
        blocks=("You are an agent.",),
        opening="Directory: /home/me",
        tools=HEAD.tools,
        model=MODEL,
    )
    request = project([head, user(2, "go"), answer(3, "hi"), user(4, "on")], TRAITS)

    assert [(m.role, m.text) for m in request.messages[:3]] == [
        ("system", "You are an agent."),
        ("user", "Directory: /home/me"),
        ("user", "go"),
    ]
    assert [message.cache for message in request.messages] == [True, True, False, True, True]


def test_a_compaction_shows_its_summary_with_what_code_carried_then_what_it_keeps():
    path = [
        HEAD,
        user(2, "old"),
        answer(3, "old answer"),
        user(4, "kept"),
        compaction(5, 4),
        answer(6, "new"),
    ]

    roles = shapes(path)
    assert [role for role, _ in roles] == ["user", "user", "assistant"]
    assert "We fixed it." in roles[0][1]
    assert [text for _, text in roles[1:]] == ["kept", "new"]

    entry = compaction(
        2,
        None,
        read_files=("a.py", "b.py"),
        modified_files=("c.py",),
        anchors=("#7 exit 1: make test",),
        user_messages=("Never touch\nthe lock file", "second"),
        pinned=(PinnedText(id=1, text="the plan"),),
    )

    text = shapes([user(1), entry])[0][1]
    assert "<read-files>\na.py\nb.py\n</read-files>" in text
    assert "<modified-files>\nc.py\n</modified-files>" in text
    assert "<anchors>\n#7 exit 1: make test\n</anchors>" in text
    assert (
        "<message>\nNever touch\nthe lock file\n</message>\n<message>\nsecond\n</message>" in text
    )
    assert '<pinned>\n<entry id="#1">\nthe plan\n</entry>\n</pinned>' in text

    state = (
        StateText(tool="todo", text="[ ] tests"),
        StateText(tool="skill", name="release", text="Bump first."),
    )
    entry = compaction(
        2,
        None,
        read_files=("old.py", "new.py"),
        modified_files=("m.py",),
        shown_files=1,
        state=state,
    )

    text = shapes([user(1), entry])[0][1]
    assert "new.py\n</read-files>" in text
    assert "old.py" not in text
    assert "<modified-files>\nm.py\n</modified-files>" in text
    assert "<todo>\n[ ] tests\n</todo>" in text
    assert "<skill>\nrelease\nBump first.\n</skill>" in text


def test_a_start_that_was_dropped_leaves_a_conversation_that_only_grows():
    assert shapes([compaction(1, None), edit(2, 1, "drop"), user(3, "hi")]) == [
        ("user", Templates().conversation_start),
        ("user", "hi"),
    ]

    dropped = [user(1), ContextEditEntry(id=2, action="drop", target=1)]
    (message,) = project(dropped, TRAITS).messages
    assert (message.role, message.text) == ("user", Templates().conversation_start)
    again = project([*dropped, user(3)], TRAITS).messages
    assert (again[0].text, len(again)) == (message.text, 2)


def test_a_pruned_result_keeps_its_gist_and_address_or_its_ends():
    entry = result(412, "a", "x\n" * 412, title="src/\napp.py", tokens=3_210)
    path = [user(1), answer(2, "", call("a")), entry, prune(413, 412)]

    expected = 'read src/ app.py, 412 lines, 3.2k tokens, ok — recall("#412") brings it back]'
    text = shapes(path, templates=Templates.load(prompt))[2][1]
    assert text == f"[Old tool result content cleared: {expected}"

    entry = result(3, "a", "HEAD" + "x" * 9_000 + "TAIL")

    text = shapes([user(1), answer(2, "", call("a")), entry, prune(4, 3, keep_chars=500)])[2][1]
    assert text.startswith("HEAD")
    assert text.endswith("TAIL")
    assert len(text) <= 500
    assert "characters left out" in text


def test_dropping_a_result_drops_its_call_and_leaves_the_other():
    path = [
        user(1),
        answer(2, "", call("a"), call("b")),
        result(3, "a"),
        result(4, "b", "B"),
        edit(5, 3, "drop"),
    ]

    request = project(path, TRAITS)
    assert [c.call_id for c in request.messages[1].tool_calls] == ["b"]
    assert shapes(path)[2:] == [("tool", "B")]


def test_what_is_masked_says_so_and_where_and_keeps_its_call():
    text = shapes(
        [user(1, "the secret plan"), edit(2, 1, "mask")], templates=Templates.load(prompt)
    )[0][1]

    assert text.startswith("[Hidden by the user: user message “the secret plan”")
    assert 'recall("#1")' in text

    long = json.dumps({"path": "a.py", "content": "z" * 5_000})
    path = [user(1), answer(2, "I wrote it", call("a", long)), result(3, "a"), edit(4, 2, "mask")]

    message = project(path, TRAITS).messages[1]
    sent = json.loads(message.tool_calls[0].arguments)
    assert "[Hidden: " in message.text
    assert sent["path"] == "a.py"
    assert len(sent["content"]) <= 200


def test_a_call_without_a_result_is_told_to_be_interrupted():
    path = [user(1), answer(2, "", call("a"), call("b")), result(3, "b", "B")]

    assert shapes(path)[2:] == [("tool", INTERRUPTED_OUTPUT), ("tool", "B")]


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("", {}),
        ('{"path": ', {"invalid_arguments": '{"path": '}),
        ("[1]", {"invalid_arguments": "[1]"}),
        ('{"n": NaN}', {"invalid_arguments": '{"n": NaN}'}),
        ('{"a": "\\ud800"}', {"a": "\ufffd"}),
    ],
)
def test_arguments_that_are_no_json_object_are_repaired(written, sent):
    message = project([user(1), answer(2, "", call("a", written))], TRAITS).messages[1]

    assert json.loads(message.tool_calls[0].arguments) == sent


@pytest.mark.parametrize(
    "written", ['{"path":"a"}', '{ "path" : "ä" }', '{"a": "\\u00e4\\ud83d\\ude00"}']
)
def test_valid_arguments_stay_as_the_model_wrote_them(written):
    message = project([user(1), answer(2, "", call("a", written))], TRAITS).messages[1]

    assert message.tool_calls[0].arguments == written


def test_call_ids_are_made_unique_portable_and_short_where_they_have_to_be():
    path = [user(1)]
    for n in (2, 4):
        path += [answer(n, "", call("x")), result(n + 1, "x", f"result {n}")]

    request = project(path, TRAITS)
    made = [c.call_id for message in request.messages for c in message.tool_calls]
    answered = [message.call_id for message in request.messages if message.role == "tool"]
    assert made == answered == ["x", "x_2"]

    path = [
        user(1),
        answer(2, "", call("call 1")),
        result(3, "call 1"),
        answer(4, "", call("call_1")),
    ]
    path += [result(5, "call_1")]
    made = [c.call_id for message in project(path, TRAITS).messages for c in message.tool_calls]
    assert made == ["call 1", "call_1_2"]

    odd = "call_1__thought__AbC+/="
    own, foreign = answer(2, "", call(odd)), answer(2, "", call(odd), model="other")

    assert project([user(1), own], TRAITS).messages[1].tool_calls[0].call_id == odd
    assert (
        project([user(1), foreign], TRAITS).messages[1].tool_calls[0].call_id
        == "call_1__thought__AbC_"
    )


@pytest.mark.parametrize(
    ("tokens", "shown"),
    [(1, "[#1]"), (6, "[Hidden: #1]"), (400, "[Hidden by the user: user message “ok”")],
)
def test_masking_a_short_message_makes_it_no_longer(tokens, shown):
    said = user(1, "ok").model_copy(update={"tokens": tokens})
    (message,) = project([said, edit(2, 1, "mask")], TRAITS, Templates.load(prompt)).messages
    assert message.text.startswith(shown)


def thinking(number, *blobs, model=MODEL, **fields):
    parts = tuple(ReasoningPart(text="hm", blob=blob, model=model) for blob in blobs)
    return AssistantEntry(id=number, parts=(*parts, TextPart(text="so")), model=model, **fields)


def test_reasoning_goes_back_byte_for_byte_to_the_model_that_made_it_unless_it_was_edited():
    entry = thinking(2, '{"b":1,  "a":2}', '{"c": 3}')

    assert project([user(1), entry], TRAITS).messages[1].reasoning == (
        '{"b":1,  "a":2}',
        '{"c": 3}',
    )
    assert project([user(1), entry], ModelTraits("other")).messages[1].reasoning == ()

    entry = thinking(2, "{}")
    entry = entry.model_copy(update={"parts": (*entry.parts, call("a"))})

    kept = project([user(1), entry, result(3, "a")], TRAITS)
    dropped = project([user(1), entry, result(3, "a"), edit(4, 3, "drop")], TRAITS)
    assert kept.messages[1].reasoning == ("{}",)
    assert dropped.messages[1].reasoning == ()


@pytest.mark.parametrize(
    "entry",
    [thinking(2, "{}", None), thinking(2, "{}", interrupted=True), thinking(2, "{}", error="lost")],
)
def test_incomplete_reasoning_does_not_go_back_at_all(entry):
    assert project([user(1), entry], TRAITS).messages[1].reasoning == ()


def test_a_message_sent_during_a_run_is_wrapped_then_and_ever_after():
    path = [user(1), answer(2, "working"), user(3, "use tabs {message}", mid_run=True)]

    templates = Templates.load(prompt)
    text = shapes(path, templates=templates)[2][1]
    assert text.startswith("<system-reminder>\n")
    assert "use tabs {message}" in text
    later = [*path, answer(4, "done"), user(5, "thanks"), answer(6, "welcome")]
    assert shapes(later, templates=templates)[2][1] == text


def test_files_and_commands_of_the_user_are_told_as_valid_text():
    entry = UserEntry(id=1, parts=(TextPart(text="see"), FilePart(path="a.py", text="print()")))

    assert shapes([entry]) == [("user", 'see\n\n<file path="a.py">\nprint()\n</file>')]

    shell = ShellEntry(id=1, command="ls", output="a.py", exit_code=0)

    assert shapes([shell]) == [("user", "$ ls\na.py\n[exit code 0]")]
    assert shapes([shell.model_copy(update={"excluded": True})]) == []
    assert "$ ls, 1 line, exit 0" in shapes([shell, prune(2, 1)])[0][1]

    assert shapes([user(1, "a\ud800b\0c 😀")]) == [("user", "a\ufffdb\ufffdc 😀")]


def test_images_of_results_move_behind_them_and_are_told_to_models_without_vision():
    path = [
        UserEntry(id=1, parts=(IMAGE,)),
        answer(2, "", call("a")),
        result(3, "a", "saved", attachments=(IMAGE,)),
    ]

    texts = [text for _, text in shapes(path, replace(TRAITS, vision=False))]
    assert texts == ["[image: shot.png, 640x480]", "", "saved\n[image: shot.png, 640x480]"]

    path = [
        user(1),
        answer(2, "", call("a"), call("b")),
        result(3, "a", "shot", attachments=(IMAGE,)),
        result(4, "b", "text"),
    ]

    messages = project(path, TRAITS).messages
    assert [m.role for m in messages] == ["user", "assistant", "tool", "tool", "user"]
    assert [part for part in messages[4].content if isinstance(part, ImageRef)] == [
        ImageRef("a" * 64, "image/png")
    ]
    assert messages[4].origin == (3,)


def test_every_template_has_its_file_with_the_same_slots():
    loaded, bare = Templates.load(prompt), Templates()

    for name in Templates.__dataclass_fields__:
        slots = {part.split("}")[0] for part in getattr(bare, name).split("{")[1:]}
        assert all(f"{{{slot}}}" in getattr(loaded, name) for slot in slots), name


traits = st.builds(
    ModelTraits,
    model=st.sampled_from(MODELS),
    vision=st.booleans(),
)


def check(request, of):
    validate(request, vision=of.vision, foreign_ids=True)


@given(paths(), traits)
@thorough
def test_any_path_cut_anywhere_gives_a_request_that_is_accepted(path, of):
    for end in range(len(path) + 1):
        check(project(path[:end], of), of)


@given(paths(), traits, st.integers(0, 14))
@thorough
def test_any_path_without_its_start_gives_a_request_that_is_accepted(path, of, start):
    check(project(path[start:], of), of)


@given(paths(max_size=25), traits)
@thorough
def test_an_active_path_gives_the_request_of_the_whole_one(path, of):
    assert project(active(path), of) == project(path, of)


@given(grown_paths(), traits)
@thorough
def test_appending_an_entry_only_appends_bytes(grown, of):
    """But for kinds that change the view, and results, which come before the stand-ins of open calls are sent."""
    path, entry = grown
    before, after = (request_bytes(project(p, of)).splitlines(True) for p in (path, [*path, entry]))

    if entry.id in resolve([*path, entry]).answered():
        stand_in = next(
            (i for i, line in enumerate(before) if INTERRUPTED_OUTPUT.encode() in line), len(before)
        )
        assert after[:stand_in] == before[:stand_in]
    elif entry.kind not in CACHE_BREAKING and before != [b"\n"]:
        assert after[: len(before)] == before


@given(paths(), traits)
@thorough
def test_every_message_names_entries_of_the_path_as_its_origin(path, of):
    known = {entry.id for entry in path}

    for message in project(path, of).messages:
        assert set(message.origin) <= known


def saying(role, text="hi", **fields):
    return Message(role, (ContentText(text),) if text else (), **fields)


def calling(*call_ids, arguments="{}", tool="read"):
    return Message(
        "assistant", tool_calls=tuple(RequestToolCall(c, tool, arguments) for c in call_ids)
    )


def answering(call_id):
    return saying("tool", "ok", call_id=call_id)


@pytest.mark.parametrize(
    "messages",
    [
        (saying("user"), saying("system")),
        (saying("system", "a"), saying("system", "b"), saying("system", "c"), saying("user")),
        (saying("assistant"),),
        (saying("user", ""),),
        (saying("user", "\ud800"),),
        (saying("user"), saying("assistant", "")),
        (saying("user"), calling("a")),
        (saying("user"), calling("a"), saying("user"), answering("a")),
        (saying("user"), calling("a"), answering("a"), answering("a")),
        (saying("user"), answering("a")),
        (saying("user"), calling("a", "a"), answering("a"), answering("a")),
        (saying("user"), calling("a b"), answering("a b")),
        (saying("user"), calling("a", arguments="[1]"), answering("a")),
        (saying("user"), calling("a", tool="a.b"), answering("a")),
        (
            saying("user"),
            calling("a"),
            Message("tool", (ContentText("x"), ImageRef("a", "image/png")), call_id="a"),
        ),
    ],
)
def test_an_unsound_request_is_refused(messages):
    with pytest.raises((InvalidRequestError, ValueError)):
        validate(ModelRequest("m", messages))


def ids(view):
    return [entry.id for entry in view.entries]


def test_the_last_compaction_keeps_what_it_names_and_supersedes_earlier_ones():
    view = resolve([user(1), compaction(2, 1), user(3), answer(4), compaction(5, 3), user(6)])

    assert view.compaction.id == 5
    assert ids(view) == [3, 4, 6]


def test_the_last_head_model_mode_and_effort_count():
    path = [
        SystemEntry(id=1, blocks=("a",), model="one", mode="plan"),
        ModelChangeEntry(id=2, model="two"),
        ModeChangeEntry(id=3, mode="build"),
        user(4),
    ]

    view = resolve(path)
    assert (view.system.id, view.model, view.mode) == (1, "two", "build")
    later = resolve([*path, SystemEntry(id=5, blocks=("b",), model="three", mode="plan")])
    assert (later.system.id, later.model, later.mode) == (5, "three", "plan")
    assert (resolve([]).system, resolve([]).model, resolve([]).mode) == (None, None, None)

    path = [user(1), EffortChangeEntry(id=2, effort=Effort.HIGH), user(3)]

    assert resolve(path[:1]).effort is None
    assert resolve([*path, SystemEntry(id=4, blocks=(), model="m")]).effort.effort is Effort.HIGH
    assert resolve([*path, EffortChangeEntry(id=4, effort=None)]).effort.effort is None


def test_the_latest_edit_of_a_target_wins_but_for_prunes_of_pinned_ones():
    path = [result(1, "a"), prune(2, 1)]
    assert resolve(path).state(1) is EntryState.PRUNED
    assert resolve([*path, edit(3, 1, "restore")]).state(1) is EntryState.LIVE
    assert resolve([*path, edit(3, 1, "mask")]).state(1) is EntryState.MASKED
    assert resolve([*path, edit(3, 1, "restore"), prune(4, 1)]).state(1) is EntryState.PRUNED

    view = resolve([result(1, "a"), edit(2, 1, "pin"), prune(3, 1)])

    assert view.state(1) is EntryState.PINNED
    assert view.is_open(1)

    path = [result(1, "a"), prune(2, 1, keep_chars=2_000)]
    assert resolve(path).kept_chars == {1: 2_000}
    assert resolve([*path, prune(3, 1)]).kept_chars == {}
    assert resolve([*path, edit(3, 1, "restore")]).kept_chars == {}

    assert resolve([edit(1, 2, "drop"), user(2)]).states == {}


def test_results_answer_the_calls_before_them_in_order_and_go_with_the_answer():
    view = resolve([answer(1, "ok", "a", "b"), result(2, "b"), result(3, "a")])

    assert [entry.id for entry in view.results[1]] == [3, 2]
    assert view.answered() == {2, 3}

    view = resolve([answer(1, "ok", "a", "a"), result(2, "a"), result(3, "a")])

    assert [entry.id for entry in view.results[1]] == [2, 3]

    view = resolve([answer(1, "ok", "a"), result(2, "a"), edit(3, 1, "drop")])

    assert view.state(2) is EntryState.DROPPED


@given(paths())
def test_a_view_holds_what_it_sends_unchanged(path: list[Entry]) -> None:
    view = resolve(path)
    whole = (EntryState.LIVE, EntryState.PINNED)
    sent = {entry.id for entry in view.entries if view.state(entry.id) in whole}
    assert view.holds(None)
    for number in range(len(path) + 2):
        assert view.holds(number) is (number in sent)


def test_a_result_that_refers_to_an_earlier_one_says_so_once_that_is_no_longer_sent():
    told = "As #3, except:"
    path = [
        user(1),
        answer(2, "", call("a")),
        result(3, "a", "whole"),
        answer(4, "", call("b")),
        result(5, "b", f"{told}\n+ line", metadata=ToolMetadata(path="a.py", known_from=3)),
    ]
    assert shapes(path)[-1][1] == f"{told}\n+ line"
    for change in (edit(6, 3, "mask"), prune(6, 3), compaction(6, 4)):
        text = shapes([*path, change])[-1][1]
        assert "#3" in text
        assert text.endswith("\n+ line")
        assert not text.startswith(told)


def test_what_a_compaction_carries_of_pins_ends_with_the_pin():
    pins = (PinnedText(id=1, text="first"), PinnedText(id=2, text="second"))
    path = [user(1), user(2), user(3), compaction(4, 3, pinned=pins)]

    assert resolve(path).pinned == pins
    assert resolve([*path, edit(5, 1, "restore")]).pinned == pins[1:]
    assert resolve([*path, edit(5, 2, "drop")]).pinned == pins[:1]

    path = [user(1), compaction(2, 1, pinned=(PinnedText(id=1, text="first"),))]

    assert resolve(path).pinned == ()

    pins = (PinnedText(id=3, text="from the file of another program"),)

    assert resolve([user(1), compaction(2, None, pinned=pins), user(3)]).pinned == pins


@given(paths(), st.data())
def test_a_path_that_grew_has_the_standings_of_the_whole(
    path: list[Entry], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(path)))
    grown, whole = standings(path[:cut]).grown(path), standings(path)
    for entry in path:
        assert grown.of(entry.id, entry.kind) is whole.of(entry.id, entry.kind)


@given(paths())
def test_what_is_in_context_is_in_the_request_and_nothing_else_is(path: list[Entry]) -> None:
    found = standings(path)
    carried = {
        pin.id for entry in path if entry.kind == "compaction" for pin in entry.details.pinned
    }
    request = project(path, ModelTraits("openai/gpt-4o"))
    heads = {entry.id for entry in path if entry.kind == "system"}
    sent = {origin for message in request.messages for origin in message.origin} - heads
    whole = {Standing.SENT, Standing.PINNED, Standing.CLEARED}
    told = {e.id for e in path if e.kind != "system" and found.of(e.id, e.kind) in whole}
    assert sent - {found.compaction} - carried <= told


def test_what_is_shown_as_one_stands_as_that_of_which_the_model_has_least() -> None:
    assert together([Standing.SENT, Standing.CLEARED, Standing.PINNED]) is Standing.CLEARED
    assert together([Standing.SENT, Standing.SUMMARISED]) is Standing.SUMMARISED
    assert together([]) is Standing.UNSENT


@given(paths(), st.data())
def test_standings_name_the_newest_entry_that_edited_the_view(
    path: list[Entry], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(path)))
    kinds = ("context_edit", "prune", "compaction")
    newest = max((entry.id for entry in path if entry.kind in kinds), default=0)
    assert standings(path).newest_edit == newest
    assert standings(path[:cut]).grown(path).newest_edit == newest
