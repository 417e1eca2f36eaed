"""Pages opened from the disk, with the network off; each is opened once and kept."""

from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from clutils import explorers

APP = "document.getElementById('explorer').explorer"


class Opened:
    """A page for a `with`, and all that went wrong in it."""

    def __init__(self, browser, path: Path, hash: str = "", ready: str = f"Boolean({APP})", **context):
        self.context = browser.new_context(**{"offline": True, "reduced_motion": "reduce", **context})
        self.page, self.wrong = self.context.new_page(), []
        self.page.set_default_timeout(20_000)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("console", lambda said: said.type == "error" and self.wrong.append(said.text))
        self.page.on("requestfailed", lambda request: self.wrong.append(request.url))
        self.page.goto(path.as_uri() + hash)
        if self.page.locator("iframe").count() == 0:
            self.until(ready)

    def __enter__(self) -> "Opened":
        return self

    def __exit__(self, kind, *_) -> None:
        self.context.close()
        assert kind or self.wrong == []

    def until(self, script: str) -> None:
        """Wait until this is true; asked from outside, for the pages let nobody evaluate a text inside."""
        for _ in range(200):
            if self.page.evaluate(script):
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(f"never true: {script}")

    def ask(self, script: str, given=None):
        """What a function of (app, given) in the page returns, once what was changed before is drawn."""
        return self.page.evaluate(
            f"(given) => new Promise(requestAnimationFrame).then(() => ({script})({APP}, given))", given
        )

    def state(self) -> dict:
        return self.ask("(app) => app.state")

    def settled(self) -> str:
        """The link's hash, once it has been written: a while after the last change."""
        written = 'String(new URLSearchParams(link)).replace(/%2C/g, ",") === location.hash.slice(1)'
        self.until(f"((link) => {written})({APP}.link())")
        return self.page.evaluate("location.hash")


@pytest.fixture(scope="session")
def written(tmp_path_factory) -> Path:
    """A folder with the four pages, as they open."""
    folder = tmp_path_factory.mktemp("explorers")
    for name in explorers.NAMES:
        explorers.write(folder / f"{name}.html", name)
    return folder


@pytest.fixture(scope="session")
def opening(chromium, written):
    """opening(name, hash, context's settings): a page for a `with`."""
    return lambda name, hash="", path=None, **context: Opened(
        chromium, path or written / f"{name}.html", hash, **context
    )


@pytest.fixture(scope="session")
def kept(opening) -> Iterator:
    """kept(name): the page as it opens, one for all tests that only ask it."""
    with ExitStack() as pages:
        yield cache(lambda name: pages.enter_context(opening(name)))
