"""Lets all applications of a test process share what depends on their style sheets alone.

Importing this module is enough. Parsing the rules took a third of a start. Each is kept under everything it depends on.
"""

from typing import Any

from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet

_parse = Stylesheet._parse_rules
_parse_all = Stylesheet.parse
_parsed: dict[frozenset[tuple[str, str]], dict[Any, Any]] = {}
"""By the variables: the rules of each source, and those of all sources of a sheet together."""


def _parse_once(
    sheet: Any,
    css: str,
    read_from: Any,
    is_default_rules: bool = False,
    tie_breaker: int = 0,
    scope: str = "",
) -> Any:
    known, key = _known(sheet), (css, read_from, is_default_rules, tie_breaker, scope)
    if key not in known:
        known[key] = _parse(sheet, *key)
    return known[key]


def _parse_all_once(sheet: Any) -> None:
    known, key = _known(sheet), (*sheet.source.items(), frozenset(sheet._invalid_css))
    if key not in known:
        _parse_all(sheet)
        known[key] = (sheet._rules, sheet.rules_map)
    sheet._rules, sheet._rules_map = known[key]
    sheet._require_parse = False


def _known(sheet: Any) -> dict[Any, Any]:
    known = sheet.__dict__.get("_parsed")
    if known is None or known[0] is not sheet._variables:
        variables = sheet._variables
        known = sheet._parsed = (variables, _parsed.setdefault(frozenset(variables.items()), {}))
    return known[1]  # type: ignore[no-any-return]


Stylesheet._parse_rules = _parse_once  # type: ignore[method-assign]
Stylesheet.parse = _parse_all_once  # type: ignore[method-assign]
RuleSet.__hash__ = object.__hash__  # type: ignore[method-assign] - the same, without a call in Python
