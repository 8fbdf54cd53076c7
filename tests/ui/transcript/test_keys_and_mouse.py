"""The transcript under the user's hands: keys, clicks, drags."""

import pytest
from textual.geometry import Offset

from tests.support.transcript import Shown, answer, shown, user
from tests.ui.transcript.samples import GeneratedSource, every_kind, list_source
from tui_agent.ui.widgets.transcript import messages
from tui_agent.ui.widgets.transcript.transcript import Transcript
from tui_agent.ui.widgets.transcript.viewport import row_id


async def test_blocks_are_focused_folded_and_copied() -> None:
    async with shown(list_source(every_kind()), (80, 40)) as view:
        await view.press("home", "j", "j", "j")
        assert view.screen()[view.row_of("grep next=")].startswith(" ▎")
        await view.press("enter")
        assert " ▎  src/auth/views.py:41: next=path" in view.screen()
        await view.press("y")
        assert [message.text for message in view.sent(messages.CopyRequested)] == [
            'src/auth/views.py:41: next=path\nsrc/shop/urls.py:7: "?next="'
        ]
        await view.press("space")
        assert "views.py:41:" not in view.text()


async def test_folding_is_offered_on_exactly_the_blocks_that_fold() -> None:
    async with shown(list_source(every_kind()), (80, 200)) as view:
        await view.press("home")
        offered = set()
        blocks = sum(len(view.pane.model.item(at).blocks) for at in range(len(view.pane.model)))
        for _ in range(blocks):
            await view.press("j")
            target = view.pane.focused_target()
            assert target is not None
            keys = view.app.screen.active_bindings
            folds = target[1].foldable
            assert (keys["enter"].enabled, keys["space"].enabled) == (folds, folds)
            offered.add(folds)
        assert offered == {True, False}


async def test_folding_keeps_the_head_where_it_is() -> None:
    async with shown(list_source(every_kind()), (80, 20)) as view:
        await view.press("home", *"jjjj")
        row = view.row_of("read src/auth")
        for _ in range(3):
            await view.press("enter")
            assert view.row_of("read src/auth") == row


async def test_messages_of_the_user_are_jumped_between() -> None:
    async with shown(GeneratedSource(400)) as view:
        await view.press("N", "N")
        assert "Question 393" in view.screen()[0]
        await view.press("n")
        assert "Question 397" in view.text()
        await view.press("home", "j")
        assert view.screen()[0].startswith(" ▎You"), "the focus goes on where the user looks"


@pytest.mark.parametrize(
    ("text", "key", "action"),
    [
        ("summarised", "u", "undo"),
        ("summarised", "e", "edit"),
        ("Cleared", "b", "restore"),
        ("seq 9999", "o", "open"),
        ("You", "rub", None),
        ("You", "o", "open"),
    ],
)
async def test_blocks_ask_the_app_for_the_actions_they_have(
    text: str, key: str, action: str | None
) -> None:
    entries = every_kind()
    async with shown(list_source(entries), (80, 120)) as view:
        await view.click(4, view.row_of(text))
        await view.press(*key)
        asked = view.sent(messages.ActionRequested)
        assert [message.action for message in asked] == ([action] if action else [])
        assert {message.entry_id for message in asked} <= {entry.id for entry in entries}


async def test_a_click_folds_acts_shows_the_hidden_lines_and_follows_a_link() -> None:
    async with shown(list_source(every_kind()), (80, 120)) as view:
        y = view.row_of("session middleware")
        await view.click(view.screen()[y].index("session"), y)
        assert [message.href for message in view.sent(messages.LinkClicked)] == [
            "https://docs.example.com/sessions"
        ]
        await view.click(3, view.row_of("read src/auth"))
        assert "line_3 = 3" in view.text()
        row = view.row_of("bring back")
        await view.click(view.screen()[row].index("bring back"), row)
        assert [message.action for message in view.sent(messages.ActionRequested)] == ["restore"]
        await view.click(5, view.row_of("36 earlier"))
        assert "test_case_0 " in view.text()


async def test_the_newest_answer_that_failed_is_asked_for_again_by_key_and_click() -> None:
    until_failed = every_kind()[:-3]
    async with shown(list_source(until_failed), (80, 120)) as view:
        row = view.row_of("overloaded")
        await view.click(4, row)
        await view.pilot.press("r")
        await view.click(view.screen()[row].index("retry"), row)
        requests = view.sent(messages.ActionRequested)
        assert [(message.action, message.entry_id) for message in requests] == [
            ("retry", until_failed[-1].id)
        ] * 2


async def drag(view: Shown, start: tuple[int, int], end: tuple[int, int]) -> str | None:
    await view.pilot.mouse_down(Transcript, offset=start)
    await view.pilot.hover(Transcript, offset=end)
    await view.pilot.mouse_up(Transcript, offset=end)
    await view.settled()
    return view.app.screen.get_selected_text()


async def test_a_drag_selects_logical_text_across_blocks() -> None:
    text = "a paragraph that is wrapped because it is longer than the screen is wide"
    async with shown(
        list_source([user(1, "first"), answer(2, f"{text}\n\n- item\n  - deep")]), (40, 20)
    ) as view:
        selected = await drag(view, (0, view.row_of("first")), (30, view.row_of("deep")))
        assert selected == f"first\n\n{text}\n\n• item\n  ◦ deep"
        assert view.sent(messages.ActionRequested) == []


async def test_a_selection_stays_on_its_text_when_blocks_above_change() -> None:
    async with shown(list_source(every_kind()), (80, 120)) as view:
        y = view.row_of("The redirect dropped")
        selected = await drag(view, (2, y), (21, y))
        view.pane.fold_or_unfold(1, view.pane.model.item(1).blocks[0])
        await view.settled()
        assert view.app.screen.get_selected_text() == selected == "The redirect dropped"


async def test_two_clicks_select_a_word_and_three_a_block() -> None:
    async with shown(list_source(every_kind()), (80, 120)) as view:
        y = view.row_of("Keep the tests")
        await view.click(8, y, times=2)
        assert view.app.screen.get_selected_text() == "Keep"
        await view.click(8, y, times=3)
        assert "The login redirect" in (view.app.screen.get_selected_text() or "")


async def test_offsets_for_selection_are_only_made_when_asked_for() -> None:
    async with shown(list_source([answer(1, "text")])) as view:
        widget, offset = view.app.screen.get_widget_and_offset_at(3, view.row_of("text"))
        assert widget is view.pane
        assert offset == Offset(1, row_id(0, 0))
        assert not any("offset" in (segment.style.meta if segment.style else {}) for segment in view.pane.render_lines(
            view.pane.size.region)[0])  # fmt: skip
