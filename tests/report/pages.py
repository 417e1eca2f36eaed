"""A page as a browser would take it, and a folder of images as a user has it."""

from html.parser import HTMLParser

import numpy as np
from PIL import Image


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


def folder(path, sizes, first=0):
    """Classes of so many images each, of 8x8 and of one colour with noise."""
    for c, size in enumerate(sizes, first):
        (path / f"c{c:03d}").mkdir(parents=True)
        draw = np.random.default_rng(c)
        colour = draw.integers(0, 255, 3)
        for k in range(size):
            image = np.clip(colour + draw.normal(0, 20, (8, 8, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(image).save(path / f"c{c:03d}" / f"{k}.png")
    return path
