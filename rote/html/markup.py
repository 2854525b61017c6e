"""HTML elements as values: plain text is escaped, and every element is closed."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

__all__ = ["Markup", "data_table", "element", "join"]

_VOID = ("col", "meta")  # elements without content


class Markup(str):
    """A text that is already HTML, and is not escaped again."""

    __slots__ = ()


def element(name: str, *children: str, **attributes: object) -> Markup:
    """An element of HTML; texts among its children are escaped, `Markup` is not.

    Of attributes, `class_` and `for_` lose their last underscore, and `data_ranks` becomes data-ranks. Those that are
    None or False are left out, and those that are True have no value.

    >>> element("td", "a < b", element("b", "c"), class_="in", hidden=True, title=None)
    '<td class="in" hidden>a &lt; b<b>c</b></td>'
    """
    words = [name]
    for key, value in attributes.items():
        shown = key.rstrip("_").replace("_", "-")
        if value is True:
            words.append(shown)
        elif value is not None and value is not False:
            words.append(f'{shown}="{escape(str(value))}"')
    head = f"<{' '.join(words)}>"
    return Markup(head if name in _VOID else f"{head}{join(children)}</{name}>")


def join(parts: Sequence[str], between: str = "") -> Markup:
    """Join parts, which are escaped as the children of an element are."""
    return Markup(between.join(part if isinstance(part, Markup) else escape(str(part)) for part in parts))


def data_table(caption: str, heads: Sequence[str], rows: Sequence[tuple[dict[str, object], Sequence[str]]]) -> Markup:
    """A table whose first column names the rows; each row has attributes and cells."""
    head = element("tr", *[element("th", name, scope="col") for name in heads])
    body = []
    for attributes, (first, *rest) in rows:
        cells = [element("th", first, scope="row"), *[element("td", cell) for cell in rest]]
        body.append(element("tr", *cells, **attributes))
    whole = element("table", element("caption", caption), element("thead", head), element("tbody", *body))
    return element("div", whole, class_="scroll", role="region", tabindex=0, aria_label=caption)
