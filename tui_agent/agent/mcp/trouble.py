"""Why a server is not there, and what its user can do about it: one sentence for each."""

from http import HTTPStatus

from pydantic import ValidationError

from tui_agent.agent.mcp.records import McpError
from tui_agent.agent.mcp.settings import McpConfigError, ServerSpec
from tui_agent.lazy import dataclass

_UNAUTHORIZED = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


@dataclass(frozen=True, slots=True)
class Trouble:
    """``reason`` is without its full stop, ``advice`` with it."""

    reason: str
    advice: str


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What is known of a connection's end beside its error.

    ``late`` are the seconds it had, when they were not enough; ``status`` is the last HTTP status that refused
    something; ``last_words`` is the last line the server wrote to its standard error, ``noise`` the first one it wrote
    to its standard output that is not the protocol.
    """

    late: float | None = None
    status: int | None = None
    last_words: str = ""
    noise: str = ""


def trouble_of(error: BaseException | None, spec: ServerSpec, around: Circumstances) -> Trouble:
    """Return why a connection failed or ended; None is an end without an error. Groups hold the cause inside."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, McpConfigError):
        return Trouble(str(error), "Set it in the environment before tui-agent is started, or give it a default.")
    if spec.transport == "http":
        return _of_http(error, spec, around)
    return _of_stdio(error, spec, around)


def _of_stdio(error: BaseException | None, spec: ServerSpec, around: Circumstances) -> Trouble:
    where = _where(spec)
    match error:
        case FileNotFoundError() if error.filename:
            return Trouble(
                f"there is no program “{error.filename}”", f"Install it, or correct its command in {where}; then r."
            )
        case PermissionError():
            return Trouble(f"“{spec.settings.command}” is no program", f"Correct its command in {where}; then r.")
    if around.noise and (around.late is not None or error is None):
        reason = f"it writes what is not the protocol to its standard output (“{around.noise}”)"
        return Trouble(
            reason, f"Does its command in {where} start a server, with all output for people on standard error?"
        )
    if around.late is not None:
        reason = f"it did not answer within {around.late:g} s"
        advice = f"Does its command in {where} start a server that speaks over standard output? r starts it again."
    else:
        reason, advice = _text(error), "Its log (l) may say why; r starts it again."
    said = around.last_words
    return Trouble(f"{reason} ({said})" if said and said not in reason else reason, advice)


def _of_http(error: BaseException | None, spec: ServerSpec, around: Circumstances) -> Trouble:
    where = _where(spec)
    if isinstance(error, McpError):
        return Trouble(_text(error), "r asks for the login again.")
    if around.late is not None:
        return Trouble(
            f"it did not answer within {around.late:g} s", f"Is the address in {where} right? r tries again."
        )
    if around.status is not None:
        return _of_refusal(around.status, spec)
    if type(error).__name__ == "ConnectError":  # of httpx, which is not to be imported for this
        reason = f"nobody answers at {spec.settings.url}"
        return Trouble(reason, f"Start it, or correct its address in {where}; then r.")
    return Trouble(_text(error), "r tries again.")


def _of_refusal(status: int, spec: ServerSpec) -> Trouble:
    where = _where(spec)
    if status not in _UNAUTHORIZED:
        advice = f"Is the address in {where} right, with its path? r tries again."
        return Trouble(f"it answered {_phrase(status)}", advice)
    advice = f"Correct its headers in {where}; then R." if spec.settings.is_authorized else "o logs in again."
    return Trouble(f"it refused with {_phrase(status)}", advice)


def _where(spec: ServerSpec) -> str:
    return "config.toml" if spec.source == "user" else ".mcp.json"


def _phrase(status: int) -> str:
    try:
        return f"{status:d} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _text(error: BaseException | None) -> str:
    match error:
        case None:
            return "it ended"
        case TimeoutError():
            return "it did not answer in time"
        case ValidationError():
            return "it answered with what the protocol does not know"
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__
