"""Any path, any model: the request is accepted, the same every time, and only grows at its end."""

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.entry_strategies import CACHE_BREAKING, MODELS, active, grown_paths, paths
from tests.support.request_validator import validate
from tests.support.thoroughness import EXAMPLES
from tui_agent.context.projection import ModelTraits, project
from tui_agent.context.request import request_bytes
from tui_agent.context.view import resolve
from tui_agent.session.entries import INTERRUPTED_OUTPUT

traits = st.builds(
    ModelTraits,
    model=st.sampled_from(MODELS),
    vision=st.booleans(),
    alternating_roles=st.sampled_from([False, False, True]),
    short_call_ids=st.sampled_from([False, False, True]),
)
thorough = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)


def check(request, of):
    validate(
        request,
        vision=of.vision,
        alternating=of.alternating_roles,
        foreign_ids=True,
    )


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
    of = replace(of, alternating_roles=False)
    before, after = (request_bytes(project(p, of)).splitlines(True) for p in (path, [*path, entry]))

    if entry.id in resolve([*path, entry]).answered():
        stand_in = next((i for i, line in enumerate(before) if INTERRUPTED_OUTPUT.encode() in line), len(before))
        assert after[:stand_in] == before[:stand_in]
    elif entry.kind not in CACHE_BREAKING and before != [b"\n"]:
        assert after[: len(before)] == before


@given(paths(), traits)
@thorough
def test_every_message_names_entries_of_the_path_as_its_origin(path, of):
    known = {entry.id for entry in path}

    for message in project(path, of).messages:
        assert set(message.origin) <= known
