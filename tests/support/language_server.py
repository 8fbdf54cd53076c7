"""A language server that knows little and can misbehave: ``language_server.py HOW``, on standard input and output.

It finds ``def NAME`` and words in Python files. What it was sent unasked stands in its hover.
"""

import json
import re
import sys
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

HOW = sys.argv[1] if len(sys.argv) > 1 else "well"
heard: list[str] = []
texts: dict[str, str] = {}
roots: list[Path] = []
loading: list[str] = []


def send(message: dict[str, Any]) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    sys.stdout.buffer.flush()


def receive() -> dict[str, Any]:
    size = 0
    while line := sys.stdin.buffer.readline().strip():
        size = int(line.partition(b":")[2])
    if not size:
        raise SystemExit
    message: dict[str, Any] = json.loads(sys.stdin.buffer.read(size))
    return message


def place(uri: str, line: int, start: int) -> dict[str, Any]:
    at = {"line": line, "character": start}
    return {"uri": uri, "range": {"start": at, "end": at}}


def words(pattern: str) -> list[dict[str, Any]]:
    return [
        place(path.as_uri(), number, found.start(1))
        for path in sorted(roots[0].rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines())
        for found in re.finditer(pattern, line)
    ]


def name_in(found: dict[str, Any]) -> str:
    at = found["range"]["start"]
    text = Path(unquote(urlsplit(found["uri"]).path)).read_text()
    return re.split(r"\W", text.split("\n")[at["line"]][at["character"] :])[0]


def name_at(params: dict[str, Any]) -> str:
    at = params["position"]
    line = texts[params["textDocument"]["uri"]].split("\n")[at["line"]]
    start = len(line.encode("utf-16-le")[: 2 * at["character"]].decode("utf-16-le"))
    found = re.match(r"\w+", line[start:])
    return found[0] if found else ""


def symbols(text: str) -> list[dict[str, Any]]:
    def row(name: str, line: int, start: int, kind: int) -> dict[str, Any]:
        around = place("", line, start)["range"]
        return {
            "name": name,
            "kind": kind,
            "range": around,
            "selectionRange": around,
            "children": [],
        }

    found: list[dict[str, Any]] = []
    for number, line in enumerate(text.split("\n")):
        declared = re.match(r"(\s*)(class|def) (\w+)", line)
        if declared is None:
            continue
        kind = 5 if declared[2] == "class" else 12
        one = row(declared[3], number, declared.start(3), kind)
        (found[-1]["children"] if declared[1] and found else found).append(one)
    return found


def answer(method: str, params: dict[str, Any]) -> Any:
    match method:
        case "textDocument/documentSymbol":
            return symbols(texts[params["textDocument"]["uri"]])
        case "textDocument/definition" | "textDocument/implementation":
            return words(rf"(?:def|class) ({name_at(params)})\b")
        case "textDocument/references":
            return words(rf"\b({name_at(params)})\b")
        case "textDocument/prepareCallHierarchy":
            return [{"name": name_at(params)}]
        case "callHierarchy/incomingCalls":
            calls = words(rf"(?<!def )\b({params['item']['name']})\(")
            return [{"from": one, "fromRanges": [one["range"]]} for one in calls]
        case "textDocument/hover":
            return {"contents": {"kind": "markdown", "value": "\n".join([name_at(params), *heard])}}
        case "workspace/symbol":
            found = words(rf"(?:def|class) (\w*{params['query']}\w*)")
            return [{"name": name_in(one), "kind": 12, "location": one} for one in found]
    return None


def misbehave(number: object) -> bool:  # noqa: C901 - one way each
    """Answer a request in another way; returns whether that was all."""
    match HOW:
        case "garbage":
            sys.stdout.write("no frame\n" * 20_000)
        case "no json":
            sys.stdout.write("Content-Length: 3\r\n\r\n{{{")
        case "huge":
            sys.stdout.write("Content-Length: 900000000\r\n\r\n" + " " * 100_000)
        case "dies":
            sys.stderr.write("out of luck\n")
            raise SystemExit(3)
        case "escapes":
            said = {"contents": "\x1b]0;title\x07\x1b[31mred\x1b[0m"}
            send({"id": number, "result": said})
        case "slow":
            time.sleep(600)
        case "rows":
            odd = ["x", None, {"uri": 5}, {"uri": "file:///a", "range": {"start": {"line": -1}}}]
            send({"id": number, "result": [*odd, {"targetUri": "jdt://x", "range": 1}]})
        case "loading":
            if loading[-1] == "end":
                return False
            send({"id": number, "result": []})
        case "again":
            if loading[-1] == "again":
                return False
            loading.append("again")
            send({"id": number, "error": {"code": -32801, "message": "content modified"}})
        case "refuses":
            send({"id": number, "error": {"code": 1, "message": "no " * 500}})
        case "asks":
            for one in range(500):
                send({"id": f"{one}" * 1_000, "method": "client/registerCapability", "params": {}})
            time.sleep(600)
        case "outside":
            here = (roots[0] / name for name in (".env", "gone.py", "app.py"))
            send(
                {
                    "id": number,
                    "result": [place(p.as_uri(), 0, 0) for p in (Path("/etc/hostname"), *here)],
                }
            )
        case _:
            return False
    sys.stdout.flush()
    return True


def progress(kind: str) -> None:
    loading.append(kind)
    send({"method": "$/progress", "params": {"token": 1, "value": {"kind": kind}}})


def check(uri: str, version: int) -> None:
    def found(number: int, word: str, severity: int) -> dict[str, Any]:
        return {
            "range": place(uri, number, 0)["range"],
            "message": f"no {word}\n\nnote",
            "severity": severity,
        }

    rows = [
        found(number, word, severity)
        for number, line in enumerate(texts[uri].split("\n"))
        for word, severity in (("BAD", 1), ("SO_SO", 2))
        if word in line
    ]
    about = {"uri": uri, "version": version, "diagnostics": rows}
    send({"method": "textDocument/publishDiagnostics", "params": about})


def hear(message: dict[str, Any]) -> None:
    params = message.get("params") or {}
    document = params.get("textDocument", {})
    match message["method"]:
        case "initialized":
            send({"method": "window/logMessage", "params": {"message": "Found 2 source files"}})
        case "textDocument/didOpen":
            texts[document["uri"]] = document["text"]
            check(document["uri"], document["version"])
        case "textDocument/didChange":
            texts[document["uri"]] = params["contentChanges"][0]["text"]
            check(document["uri"], document["version"])
        case "workspace/didChangeWatchedFiles":
            names = (f"{Path(one['uri']).name} {one['type']}" for one in params["changes"])
            heard.append(f"changed: {', '.join(sorted(names))}")


def main() -> None:
    while True:
        message = receive()
        if "method" not in message:
            heard.append(json.dumps(message.get("result", message.get("error"))))
        elif "id" not in message:
            hear(message)
        elif message["method"] == "initialize":
            roots.append(Path(unquote(urlsplit(message["params"]["rootUri"]).path)))
            names = (
                "definition",
                "references",
                "implementation",
                "hover",
                "callHierarchy",
                "workspaceSymbol",
            )
            able = {f"{name}Provider": HOW != "knows little" for name in names}
            send({"id": message["id"], "result": {"capabilities": able}})
            if HOW == "edits":
                send(
                    {
                        "id": "e",
                        "method": "workspace/applyEdit",
                        "params": {"edit": {"changes": {}}},
                    }
                )
                send({"id": "f", "method": "workspace/executeShell", "params": {}})
            progress("begin" if HOW == "loading" else "end")
            if HOW == "loading":
                threading.Timer(0.3, progress, ["end"]).start()
        elif HOW == "flat" and message["method"] == "textDocument/documentSymbol":
            uri = message["params"]["textDocument"]["uri"]
            found = [
                {
                    "name": row["name"],
                    "kind": row["kind"],
                    "location": place(uri, max(line - 1, 0), 0),
                }
                for row in symbols(texts[uri])
                for line in (row["range"]["start"]["line"],)
            ]
            send({"id": message["id"], "result": found})
        elif message["method"] == "textDocument/documentSymbol" or not misbehave(message["id"]):
            send({"id": message["id"], "result": answer(message["method"], message["params"])})


if __name__ == "__main__":
    main()
