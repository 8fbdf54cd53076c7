"""The ``websearch`` tool: finds web pages, with a search service or the model's provider."""

from datetime import date
from typing import Any, ClassVar

from pydantic import Field, field_validator

from tui_agent.context.projection import ModelTraits
from tui_agent.errors import ToolError
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.session.entries import ToolMetadata
from tui_agent.session.tool_traits import ToolTraits
from tui_agent.tools.base import Tool, ToolContext, ToolInput, ToolResult
from tui_agent.tools.outputs import Output, finish
from tui_agent.web.addresses import read_address
from tui_agent.web.searching import FoundPage, Searcher, WebQuery

NOTHING = "[No page was found.]"
"""The output for a search that found no page."""


class WebSearchInput(ToolInput):
    """Arguments of the ``websearch`` tool."""

    query: str
    domains: list[str] = Field(default_factory=list)
    """Hosts whose pages are searched; empty for all hosts."""
    after: str = Field(default="", description="YYYY-MM-DD")
    """Earliest day on which the pages may have been published; "" for any day."""

    @field_validator("domains", mode="before")
    @classmethod
    def _as_list(cls, value: Any) -> Any:
        return value.replace(",", " ").split() if isinstance(value, str) else value


class WebSearchTool(Tool[WebSearchInput]):
    """Searches the web. Only the call's arguments are sent, and the found pages are not opened."""

    name: ClassVar[str] = "websearch"
    description: ClassVar[str] = "Find web pages."
    Input = WebSearchInput
    traits = ToolTraits(
        kind="fetch",
        other_names="searchweb googlesearch googlewebsearch bravesearch internetsearch",
        repeatable=True,
        counts="page",
        runs_of="query",
    )
    read_only: ClassVar[bool] = True

    def __init__(
        self, service: Searcher | None = None, missing: str = "", *, by_model: bool = False
    ) -> None:
        """Create the tool; ``service`` is None if no search service is configured.

        ``missing`` is a sentence on how to configure a service. With ``by_model``, the model's
        provider searches if there is no service.
        """
        self._service = service
        self._missing = missing
        self._by_model = by_model

    def offered_to(self, model: ModelTraits) -> bool:
        return self._service is not None or (self._by_model and model.searches)

    @property
    def missing(self) -> str:
        return self._missing

    def needs(self, arguments: WebSearchInput, context: ToolContext) -> tuple[PermissionNeed, ...]:
        words = _query(arguments).with_sites()
        detail = f"Sent to {self._searcher(context).name}: {words}"
        return (PermissionNeed(Permission.WEBSEARCH, words, detail=detail),)

    async def run(self, arguments: WebSearchInput, context: ToolContext) -> ToolResult:
        query = _query(arguments)
        found = await self._searcher(context).search(query)
        blocks = [_block(number, page) for number, page in enumerate(found.pages, start=1)]
        footer = ""
        if found.note:
            footer = f"[{found.note}]"
        output = Output(
            text="\n\n".join(blocks) or NOTHING,
            title=self.title(arguments),
            footer=footer,
            metadata=ToolMetadata(count=len(blocks)),
        )
        return await finish(output, context)

    def title(self, arguments: WebSearchInput) -> str:
        return " ".join([*arguments.query.split(), *arguments.domains])[:120]

    def _searcher(self, context: ToolContext) -> Searcher:
        if self._service is not None:
            return self._service
        if self._by_model and context.searcher is not None:
            return context.searcher
        raise ToolError(self._missing or "No web search is configured.")


def _query(arguments: WebSearchInput) -> WebQuery:
    """Return the arguments of a ``websearch`` call as a query.

    Raises:
        ToolError: the words are missing, or a host or the date is invalid.
    """
    words = " ".join(arguments.query.split())
    if not words:
        raise ToolError("The query has no words.")
    hosts = (read_address(domain.strip().removeprefix("*.")).host for domain in arguments.domains)
    after = None
    if arguments.after.strip():
        try:
            after = date.fromisoformat(arguments.after.strip())
        except ValueError:
            raise ToolError(
                f"after must be a date such as 2026-01-31, not {arguments.after!r}."
            ) from None
    return WebQuery(words, tuple(dict.fromkeys(hosts)), after)


def _block(number: int, page: FoundPage) -> str:
    day = ""
    if page.day is not None:
        day = f" ({page.day.isoformat()})"
    lines = [f"{number}. {page.title}{day}", str(page.address), page.text]
    return "\n".join(filter(None, lines))
