"""Searches the web by asking a model to use its provider's search, outside the conversation.

The websearch tool uses this search if no search service is available and the setting ``service``
allows it. `model_search` decides which model is asked.
"""

from string import Template

from tui_agent.agent.channel import Journal
from tui_agent.agent.clients import complete_in_time
from tui_agent.agent.ports import AgentPorts
from tui_agent.context.request import ContentText, Message, ModelRequest
from tui_agent.errors import ToolError
from tui_agent.lazy import frozen
from tui_agent.model.protocol import ModelError
from tui_agent.session.effort import Effort
from tui_agent.web.searching import Found, WebQuery, pages_of

MAX_TOKENS = 4_000
"""Maximum tokens of the answer in which the model reports its search results."""
SECONDS = 120.0
"""Timeout of a search, in seconds. It is long because the provider reads pages before it
answers."""
_SAID_CHARS = 300
"""Maximum number of characters that are shown of the model's answer if it names no pages."""


@frozen
class ModelSearch:
    """A search service that asks ``model`` to search with its provider's own tool."""

    journal: Journal
    ports: AgentPorts
    model: str

    @property
    def name(self) -> str:
        return self.model

    async def search(self, query: WebQuery) -> Found:
        """Return the pages found. If there are none, the note contains the answer's beginning.

        The cost is added to the session's cost.

        Raises:
            ToolError: the request failed or took too long.
        """
        after = ""
        if query.after is not None:
            after = f"Use only pages from {query.after.isoformat()} or later."
        asked = Template(self.ports.prompt("websearch")).substitute(query=query.words, after=after)
        levels = self.ports.directory.traits(self.model).efforts
        request = ModelRequest(
            model=self.model,
            messages=(Message("user", (ContentText(asked),)),),
            max_output_tokens=MAX_TOKENS,
            effort=Effort.LOW if Effort.LOW in levels else None,
            search_hosts=query.domains,
        )
        try:
            answer = await complete_in_time(self.ports, request, self.journal, SECONDS)
        except ModelError as error:
            raise ToolError(f"{self.model} could not search: {error.message}") from None
        except TimeoutError:
            raise ToolError(f"{self.model} did not finish its search in {SECONDS:g} s.") from None
        rows = [
            {"url": page.url, "title": page.title, "text": page.text, "page_age": page.day}
            for page in answer.pages
        ]
        pages = pages_of(rows, query)
        note = ""
        if not pages:
            note = " ".join(answer.text.split())[:_SAID_CHARS]
        return Found(pages, note)


def model_search(journal: Journal, ports: AgentPorts, model: str) -> ModelSearch | None:
    """Return a search that asks the small model or, if that can't search, ``model``.

    Returns None if ``model`` can't search, even if the small model can: the search tool is offered
    only to models that can search.
    """
    if not ports.directory.traits(model).searches:
        return None
    for name in (ports.small_model, model):
        if name and ports.directory.traits(name).searches:
            return ModelSearch(journal, ports, name)
    return None
