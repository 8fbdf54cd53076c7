"""Asks a model a question that it needs a function of this program for: word_count.py [MODEL [BASE_URL]]."""

import asyncio
import sys

from tui_agent import Agent, AnswerDelta, Session, ToolStarted


def count_words(text: str, shortest: int = 1) -> dict[str, int]:
    """Count the words of a text that have at least ``shortest`` letters."""
    words = [word for word in text.split() if len(word) >= shortest]
    return {"words": len(words), "different": len(set(words))}


async def main(model: str = "demo", base_url: str = "") -> None:
    """Ask, and show what happens and what the session holds then."""
    with Session("words.db") as session:
        async with Agent(model, base_url=base_url, session=session, tools=[count_words]) as agent:
            async for event in agent.run("Hello! How many words has “to be or not to be”?"):
                match event:
                    case AnswerDelta(text=text):
                        print(text, end="", flush=True)
                    case ToolStarted(tool=tool, arguments=arguments):
                        print(f"[{tool} {arguments}]")
        print()
        print([(entry.id, entry.parent_id, entry.kind) for entry in session.tree()])


asyncio.run(main(*sys.argv[1:]))
