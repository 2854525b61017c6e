"""A strict reader of HTML: every element that is opened is closed, in order, and what refers to another finds it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

__all__ = ["Node", "read"]

VOID = {"col", "meta"}
RAW = {"script", "style"}
KNOWN = {
    *("html", "head", "title", "body", "header", "footer", "nav", "main", "section", "div", "span", "p", "h1", "h2"),
    *("h3", "h4", "b", "code", "small", "pre", "kbd", "a", "ol", "li", "dl", "dt", "dd", "table", "caption", "thead"),
    *("tbody", "tr", "th", "td", "label", "select", "option", "button", "details", "summary"),
    *("colgroup", "figure", "figcaption", "svg", "g", "path", "text"),
}


@dataclass(eq=False)
class Node:
    """An element."""

    name: str
    attributes: dict[str, str | None] = field(default_factory=dict)
    children: list[Node | str] = field(default_factory=list)

    def all(self, name: str = "", **attributes: str) -> Iterator[Node]:
        """The elements in it, in order, of a name and with these attributes; `class_` is one of its classes."""
        for child in self.children:
            if isinstance(child, Node):
                if name in ("", child.name) and all(child.has(key, value) for key, value in attributes.items()):
                    yield child
                yield from child.all(name, **attributes)

    def has(self, key: str, value: str) -> bool:
        given = self.attributes.get(key.rstrip("_").replace("_", "-"))
        return value in (given or "").split() if key == "class_" else given == value

    def the(self, name: str = "", **attributes: str) -> Node:
        """The one element of this kind."""
        (node,) = self.all(name, **attributes)
        return node

    @property
    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    @property
    def cells(self) -> list[list[str]]:
        """The texts of a table, row by row."""
        return [[each.text for each in row.children if isinstance(each, Node)] for row in self.all("tr")]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open = [Node("document")]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in KNOWN | VOID | RAW, tag
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), attrs
        node = Node(tag, dict(attrs))
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().name == tag

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")


def read(text: str) -> Node:
    """The document, which is in order."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    (document,) = reader.open
    ids = [node.attributes["id"] for node in document.all() if "id" in node.attributes]
    assert len(ids) == len(set(ids))
    for node in document.all():
        for key in ("aria-labelledby", "for"):
            assert node.attributes.get(key, ids and ids[0]) in ids or key not in node.attributes
        if "href" in node.attributes:
            assert (node.attributes["href"] or "").removeprefix("#") in ids
        assert not {"src", "srcset", "action", "onclick", "onload"} & node.attributes.keys()
    return document
