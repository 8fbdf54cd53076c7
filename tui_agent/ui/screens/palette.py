"""The command palette: Textual's, left once however many clicks come, and with keys before its list is there."""

from textual.command import CommandList, CommandPalette

from tui_agent.ui.error_boundary import PageScreen


class Palette(CommandPalette, PageScreen[None]):
    """Finds a command by its words."""

    def _action_command_list(self, action: str) -> None:
        if self.query_one(CommandList).option_count:
            super()._action_command_list(action)
