"""Finds the styles of the parts of a widget as Textual does."""

from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode
from textual.widget import Widget


def eager_styles(widget: Widget) -> dict[str, object]:
    """Return the styles of all parts as Textual finds them."""
    sheet = widget.app.stylesheet
    found = {}
    for name in widget._get_component_classes():
        part = DOMNode(classes=name)
        part._attach(widget)
        Stylesheet.apply(sheet, part)
        found[name] = part.styles.base.get_rules()
    return found
