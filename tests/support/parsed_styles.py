"""Lets all applications of a test process share the rules of their style sheets: parsing them took a third of a start.

Importing this module is enough. What a rule is depends on nothing but what it is kept under here.
"""

from typing import Any

from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet

_parse = Stylesheet._parse_rules
_parsed: dict[frozenset[tuple[str, str]], dict[tuple[Any, ...], Any]] = {}


def _parse_once(
    sheet: Any, css: str, read_from: Any, is_default_rules: bool = False, tie_breaker: int = 0, scope: str = ""
) -> Any:
    known = sheet.__dict__.get("_parsed")
    if known is None or known[0] is not sheet._variables:
        variables = sheet._variables
        known = sheet._parsed = (variables, _parsed.setdefault(frozenset(variables.items()), {}))
    key = (css, read_from, is_default_rules, tie_breaker, scope)
    if key not in known[1]:
        known[1][key] = _parse(sheet, *key)
    return known[1][key]


Stylesheet._parse_rules = _parse_once  # type: ignore[method-assign]
RuleSet.__hash__ = object.__hash__  # type: ignore[method-assign] - the same, without a call in Python
