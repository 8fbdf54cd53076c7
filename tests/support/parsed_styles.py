"""Lets all applications of a test process share what depends on their style sheets alone.

Importing this module is enough. Parsing the rules took a third of a start, and finding those of the parts of widgets
(their component classes) a sixth of every test of the screen. Each is kept under everything it depends on; every night
the styles of parts are found anew.
"""

from typing import Any

from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode

from tests.support.thoroughness import NIGHTLY

_parse = Stylesheet._parse_rules
_parse_all = Stylesheet.parse
_parsed: dict[frozenset[tuple[str, str]], dict[Any, Any]] = {}
"""By the variables: the rules of each source, and those of all sources of a sheet together."""
_parts: dict[int, dict[Any, Any]] = {}
"""By the rules of a sheet, which are kept: the pseudo-classes that rules of parts ask for, by the names of the parts;
the styles of parts, by everything that rules can ask of a widget and what it is in."""


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
        _parts[id(sheet._rules)] = {}
    sheet._rules, sheet._rules_map = known[key]
    sheet._require_parse = False


def _known(sheet: Any) -> dict[Any, Any]:
    known = sheet.__dict__.get("_parsed")
    if known is None or known[0] is not sheet._variables:
        variables = sheet._variables
        known = sheet._parsed = (variables, _parsed.setdefault(frozenset(variables.items()), {}))
    return known[1]  # type: ignore[no-any-return]


def _style_parts_once(sheet: Any, node: Any) -> None:
    """Style the parts of a widget, as the method this stands for does."""
    names = node._get_component_classes()
    if not names:
        return
    before = node._component_styles.copy()
    node._component_styles.clear()
    known = _known_parts(sheet, node, names)
    for name in sorted(names):
        part = DOMNode(classes=name)
        part._attach(node)
        if name in known:
            part._css_styles._rules.update(known[name])
        else:
            sheet.apply(part)
            known[name] = part._css_styles._rules.copy()
        node._component_styles[name] = part.styles
    if node._component_styles != before:
        node.refresh()


def _known_parts(sheet: Any, node: Any, names: frozenset[str]) -> dict[str, Any]:
    """Return the styles of parts found so far where rules find the same widget in the same place."""
    kept = _parts[id(sheet.rules)]
    if names not in kept:
        found = [
            rule
            for name in ("*", *(f".{name}" for name in names))
            for rule in sheet.rules_map.get(name, ())
        ]
        kept[names] = tuple(set[str]().union(*(rule.pseudo_classes for rule in found)))
    asked = kept[names]
    path = [
        (type(one), one._id, one.classes, *[name for name in asked if one.has_pseudo_class(name)])
        for one in node.css_path_nodes
    ]
    return kept.setdefault(tuple(path), {})  # type: ignore[no-any-return]


Stylesheet._parse_rules = _parse_once  # type: ignore[method-assign]
Stylesheet.parse = _parse_all_once  # type: ignore[method-assign]
RuleSet.__hash__ = object.__hash__  # type: ignore[method-assign] - the same, without a call in Python
if not NIGHTLY:
    Stylesheet._process_component_classes = _style_parts_once  # type: ignore[method-assign]
