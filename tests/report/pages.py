"""A page as a browser would take it."""

from html.parser import HTMLParser


class Page(HTMLParser):
    """Everything that a page would load, its pictures without alt text, and its unclosed tags."""

    VOID = ("meta", "img", "br", "link", "input")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads, self.mute, self.open = [], 0, []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.loads += [
            v for k, v in given.items() if k in ("src", "href", "data") and not v.startswith("data:")
        ]
        self.mute += tag == "img" and len(given.get("alt", "")) < 20
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
