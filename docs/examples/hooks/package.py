"""The same as functions of a package, which names this module as an entry point in its pyproject.toml.

[project.entry-points."tui_agent.hooks"]
ours = "our_package.hooks"

Functions may be plain (they run in a thread) or async, and return an answer, a dict of its fields, or None.
"""

from tui_agent.agent.hooks.payloads import BeforeTool, BeforeToolAnswer, RunEnd

ended: list[str] = []


def before_tool(given: BeforeTool) -> BeforeToolAnswer | None:
    """Refuse to touch generated files."""
    path = str(given.arguments.get("path", ""))
    if given.tool in {"edit", "write"} and path.startswith("generated/"):
        return BeforeToolAnswer(decision="deny", message="Files in generated/ are made by `make code`.")
    return None


async def run_end(given: RunEnd) -> dict[str, str]:
    """Remember how runs ended."""
    ended.append(given.reason)
    return {"notice": f"Run {len(ended)} ended: {given.reason}."}
