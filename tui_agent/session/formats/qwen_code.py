"""Reads Qwen Code's sessions, whose lines have parents as in Claude Code.

The messages are stored as in Gemini CLI.

After a rewind, the dropped messages stay in the file, and the next message has the record before
them as its parent. This applies to files of version 0.15.
"""

from tui_agent.session.formats.gemini import GeminiReader
from tui_agent.session.formats.incoming import IncomingSession, summary_of
from tui_agent.session.formats.reading import Node

_BOOKKEEPING = frozenset({"ui_telemetry", "attribution_snapshot", "at_command", "rewind"})
"""Kinds of system lines that add nothing to the conversation."""


def is_line(node: Node) -> bool:
    message = node.value.get("message")
    if not {"uuid", "sessionId"} <= node.value.keys():
        return False
    return "systemPayload" in node.value or (isinstance(message, dict) and "parts" in message)


class Reader(GeminiReader):
    """Builds a session from a file of Qwen Code.

    Each line's message is added below the line's parent.
    """

    program = "Qwen Code"
    provider = "dashscope"
    _title = ""

    def read(self) -> IncomingSession:
        name = ""
        cwd = ""
        for node in self.nodes():
            name = name or node.text("sessionId", "")
            cwd = cwd or node.text("cwd", "")
            self.pass_over(None, self.place(node.text("parentUuid", "") or None))
            self._line(node)
            self.pass_over(node.text("uuid"), self.last)
        self.require_conversation()
        return self.finish(name=name, cwd=cwd, title=self._title)

    def _line(self, node: Node) -> None:
        at = node.time("timestamp")
        message = node.node("message")
        content = {"content": message.value.get("parts", [])}
        match kind := node.text("type", ""):
            case "user":
                # Notes by the program about background work and timers are in the user's role, with
                # a subtype.
                subtype = node.text("subtype", "")
                self.add_user(
                    Node(content, node.where), at, f"qwen-code:{subtype}" if subtype else None
                )
            case "assistant":
                answer = content | {
                    "model": node.text("model", "") or None,
                    "tokens": _tokens(node),
                }
                self.add_answer(Node(answer, node.where), node.text("uuid"), at)
            case "tool_result":
                status = node.node("toolCallResult").text("status", "success")
                for part in message.nodes("parts"):
                    response = part.node("functionResponse")
                    self.add_result(response.text("id", ""), response, status, at)
            case "system":
                self._system(node, at)
            case _:
                self.leave_out(f"“{kind[:40]}” line")

    def _system(self, node: Node, at: int) -> None:
        kind = node.text("subtype", "")
        payload = node.node("systemPayload")
        if kind == "custom_title":
            self._title = payload.text("customTitle", "") or self._title
        elif kind == "chat_compression":
            info = payload.node("info")
            texts: list[str] = []
            for message in payload.nodes("compressedHistory"):
                texts += [part.text("text", "") for part in message.nodes("parts")]
            summary = "\n\n".join(filter(None, texts))
            before = info.number("originalTokenCount")
            after = info.number("newTokenCount")
            self.follow(summary_of(summary, at, before=before, after=after, by_itself=True))
        elif kind not in _BOOKKEEPING:
            self.leave_out(f"“{kind[:40]}” line")


def _tokens(node: Node) -> dict[str, int]:
    """Return an answer's token counts under Gemini CLI's names.

    In Qwen Code, the number of candidate tokens includes thoughts, but in Gemini CLI it doesn't.
    """
    usage = node.node("usageMetadata")
    thoughts = int(usage.number("thoughtsTokenCount"))
    return {
        "input": int(usage.number("promptTokenCount")),
        "cached": int(usage.number("cachedContentTokenCount")),
        "output": max(0, int(usage.number("candidatesTokenCount")) - thoughts),
        "thoughts": thoughts,
    }
