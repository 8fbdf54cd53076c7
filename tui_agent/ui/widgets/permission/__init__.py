"""The permission question: what is asked, the answers to it, and the widget that asks."""

from tui_agent.ui.widgets.permission.choices import PermissionChoices, PermissionNote, PermissionPattern
from tui_agent.ui.widgets.permission.details import PermissionDetails
from tui_agent.ui.widgets.permission.prompt import PermissionPrompt

__all__ = ["PermissionChoices", "PermissionDetails", "PermissionNote", "PermissionPattern", "PermissionPrompt"]
