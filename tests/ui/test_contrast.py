"""Every theme gets colours that can be read, whatever its hues are."""

from hypothesis import example, given
from hypothesis import strategies as st
from textual.color import Color
from textual.theme import Theme

from tui_agent.ui.contrast import COLOURED_ROLES, readable_variables

HUES = st.integers(0, 359)


def colour(hue: int) -> str:
    return Color.from_hsl(hue / 360, 0.6, 0.5).hex


@given(HUES, HUES, HUES, HUES)
@example(165, 230, 275, 320)
def test_any_hues_make_a_theme(primary: int, accent: int, secondary: int, error: int) -> None:
    theme = Theme(
        name="any",
        primary=colour(primary),
        accent=colour(accent),
        secondary=colour(secondary),
        error=colour(error),
        background="#101010",
        foreground="#e0e0e0",
    )
    variables = readable_variables(theme.to_color_system().generate())
    assert all(Color.parse(variables[role]) for role in COLOURED_ROLES)
