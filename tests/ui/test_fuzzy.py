"""Which files a few letters after @ show first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.app.format import lower_case
from tui_agent.ui.prompting.completion import rank_files, with_directories
from tui_agent.ui.prompting.fuzzy import fuzzy_match

ROOT = "dhis-2/dhis-services/dhis-service-tracker/src/main/java/org/hisp/dhis"
NAMES = (
    "TrackedEntityController",
    "TrackedEntityControllerTest",
    "TrackedEntityTypeController",
    "DeprecatedTrackedEntityController",
    "TrackedEventControllerDefault",
    "EventService",
    "DefaultEventService",
    "UserController",
)
FOLDERS = [
    f"{ROOT}/{name}/notification{number}"
    for number in range(40)
    for name in ("tracker/ent/con", "webapi")
]
PATHS = with_directories(
    [f"{folder}/Other{number}.java" for number, folder in enumerate(FOLDERS)]
    + [f"{ROOT}/webapi/controller/trackedentity/{name}.java" for name in NAMES]
)


def names(query: str, count: int) -> list[str]:
    return [
        found.label.rsplit("/", 1)[-1].removesuffix(".java")
        for found in rank_files(query, PATHS)[:count]
    ]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("TrackedEntCon", ["TrackedEntityController", "TrackedEntityControllerTest"]),
        ("trackedentitycontroller", ["TrackedEntityController", "TrackedEntityControllerTest"]),
        ("TEC", ["TrackedEventControllerDefault", "TrackedEntityController"]),
        ("usrctl", ["UserController"]),
        ("eventserv", ["EventService", "DefaultEventService"]),
        ("webapi/trackedentcon", ["TrackedEntityController"]),
    ],
)
def test_files_come_first_whose_name_has_the_letters(query: str, first: list[str]) -> None:
    assert names(query, len(first)) == first


def test_no_directory_stands_before_a_file_whose_name_has_all_letters() -> None:
    assert set(names("trackedentitycontroller", 4)) == set(NAMES[:4])


def test_nothing_fits_without_its_letters() -> None:
    assert rank_files("trackedentityzz", PATHS) == []


@pytest.mark.timeout(60)
def test_a_text_in_which_a_letter_stands_very_often_is_matched_at_once() -> None:
    assert len(fuzzy_match("a" * 30, "a" * 2_000).offsets) == 30
    assert rank_files("a" * 30 + "b", [f"{'a' * 200}/{number}" for number in range(2_000)]) == []


@given(st.text("aAbB/._1İ", max_size=6), st.text("aAbB/._1İ", max_size=14))
def test_a_match_has_the_letters_in_their_order(query: str, text: str) -> None:
    found = fuzzy_match(query, text)
    lower = lower_case(text)
    wanted = lower_case(query)
    left = iter(lower)
    is_in_order = bool(query) and all(letter in left for letter in wanted)
    assert bool(found.offsets) == is_in_order
    assert list(found.offsets) == sorted(set(found.offsets))
    if is_in_order:
        assert "".join(lower[offset] for offset in found.offsets) == wanted


def test_a_file_whose_name_has_a_line_break_is_offered_by_a_name_that_fits_into_a_message() -> None:
    (found,) = rank_files("new", ["new\nline.txt", "old.txt"])
    assert (found.label, found.insert) == (r"new\nline.txt", r"@new\nline.txt ")
