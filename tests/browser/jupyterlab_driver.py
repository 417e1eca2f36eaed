"""A real JupyterLab, driven in a real headless Chromium.

Two classes and two functions:

* `Server`: a JupyterLab with private configuration, settings, runtime and workspace folders, on a free port
  of 127.0.0.1 with a random token, over a *copy* of the notebooks: nothing the reader has is read or written.
* `Notebook`: one notebook in one page: run all, press a slider, fetch an image's bytes, collect everything
  that went wrong (cells, widgets, kernel messages that no cell shows, errors of the page itself).
* `ran`: a notebook that was run to its end, for the scripts beside.
* `find_chromium()`: the browser, from `CLUTILS_CHROMIUM` or the usual places.
"""

import contextlib
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import TimeoutError as PlaywrightTimeout
from playwright.sync_api import sync_playwright

from clutils.course.commands import lab

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def find_chromium() -> str | None:
    """Path of a Chromium or Chrome: CLUTILS_CHROMIUM when set (and then nothing else), or one on the PATH."""
    asked = os.environ.get("CLUTILS_CHROMIUM")
    if asked:
        return shutil.which(asked)
    return next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)


def settings(windowing: str) -> dict[str, dict]:
    """JupyterLab user settings: silent, no autosave, each cell's run time recorded."""
    return {
        "@jupyterlab/apputils-extension/notification": {
            "fetchNews": "false",
            "checkForUpdates": False,
            "doNotDisturbMode": True,
        },
        "@jupyterlab/apputils-extension/themes": {"theme": "JupyterLab Light", "adaptive-theme": False},
        "@jupyterlab/extensionmanager-extension/plugin": {"enabled": False},
        "@jupyterlab/docmanager-extension/plugin": {"autosave": False},
        "@jupyterlab/notebook-extension/tracker": {
            "windowingMode": windowing,
            "recordTiming": True,
            "scrollPastEnd": False,
        },
    }


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """One JupyterLab over a copy of a folder of notebooks; `close()` ends it and every kernel it started.

    Args:
        notebooks: the folder to copy. A folder named `notebooks` is copied whole, with the `data` and
            `benchmarks` beside it linked beside the copy, so that relative paths in a notebook keep their
            meaning; of any other folder only the files directly in it that a notebook may read.
        work: an empty folder for the copy, settings and the log.
        windowing: JupyterLab's `windowingMode`; "none" renders every cell at once.
        environment: variables added to the server's environment, which kernels inherit.
    """

    def __init__(
        self,
        notebooks: Path,
        work: Path,
        windowing: str = "contentVisibility",
        environment: dict[str, str] | None = None,
    ):
        self.work, self.root = work, work / "root" / "notebooks"
        if notebooks.name == "notebooks":
            leave = shutil.ignore_patterns(".ipynb_checkpoints", "__pycache__", "runs")
            shutil.copytree(notebooks, self.root, ignore=leave)
            for name in ("data", "benchmarks"):
                if (notebooks.parent / name).exists():
                    (work / "root" / name).symlink_to(notebooks.parent / name)
        else:
            self.root.mkdir(parents=True)
            for file in notebooks.iterdir():
                if file.suffix in {".ipynb", ".py", ".csv", ".json", ".md", ".png"} and file.is_file():
                    shutil.copy(file, self.root)
        for plugin, values in settings(windowing).items():
            package, name = plugin.rsplit("/", 1)
            path = work / "settings" / package / f"{name}.jupyterlab-settings"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(values))
        self.port, self.token = free_port(), secrets.token_hex(16)
        self.log = work / "jupyterlab.log"
        private = dict(
            JUPYTER_CONFIG_DIR=work / "config",
            JUPYTER_RUNTIME_DIR=work / "runtime",
            JUPYTERLAB_SETTINGS_DIR=work / "settings",
            JUPYTERLAB_WORKSPACES_DIR=work / "workspaces",
            IPYTHONDIR=work / "ipython",
            JUPYTER_TOKEN=self.token,
            PYDEVD_DISABLE_FILE_VALIDATION="1",
        )
        # the kernel must be this interpreter's own, whatever kernelspecs the reader's folders hold
        command = [
            *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"),
            *("--ServerApp.ip=127.0.0.1", f"--ServerApp.port={self.port}", "--ServerApp.port_retries=0"),
            *(f"--ServerApp.root_dir={self.root}", "--LabApp.expose_app_in_browser=True"),
            *("--LabApp.extension_manager=readonly", "--LabApp.news_url=None", lab.FOLDS),
        ]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=work,
                env={**os.environ, **{k: str(v) for k, v in private.items()}, **(environment or {})},
            )
        try:
            self._wait(60)
        except BaseException:
            self.close()
            raise

    def _wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise RuntimeError(f"JupyterLab ended while starting:\n{self.log.read_text()[-3000:]}")
            try:
                urllib.request.urlopen(f"{self.url('api/status')}", timeout=1)
                return
            except (OSError, urllib.error.URLError):
                time.sleep(0.1)
        raise TimeoutError(f"JupyterLab did not answer in {seconds} s:\n{self.log.read_text()[-3000:]}")

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}/{path}?token={self.token}"

    def close(self) -> None:
        """End the server (it takes its kernels with it)."""
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(5)


# Every script below starts by finding the notebook on show.
NOTEBOOK = "const app = window.jupyterapp, w = app.shell.currentWidget, nb = w.content, s = w.sessionContext;"

WATCH_KERNEL = """
  window.__kernel = [];
  s.iopubMessage.connect((_, m) => { const t = m.header.msg_type, c = m.content;
    if (t === 'error') window.__kernel.push(c.ename + ': ' + c.evalue);
    if (t === 'stream' && c.name === 'stderr') window.__kernel.push(c.text); });"""

IS_READY = """name => { const a = window.jupyterapp, w = a && a.shell && a.shell.currentWidget;
  return !!(w && w.context && w.context.isReady && w.context.path === name
    && w.sessionContext && w.sessionContext.isReady && w.sessionContext.session
    && w.sessionContext.session.kernel && w.sessionContext.session.kernel.status === 'idle'); }"""

# idle alone flickers between messages, so it must last
IS_QUIET = (
    "q => {"
    + NOTEBOOK
    + """
  const busy = !s.session || !s.session.kernel || s.session.kernel.status !== 'idle' || s.pendingInput
    || nb.widgets.some(c => c.model.type === 'code' && c.model.executionState === 'running');
  if (busy) { window.__quiet = 0; return false; }
  if (!window.__quiet) window.__quiet = performance.now();
  return performance.now() - window.__quiet > q; }"""
)

CELLS = (
    "() => {"
    + NOTEBOOK
    + """
  return nb.widgets.map((c, i) => {
    const code = c.model.type === 'code', t = c.model.getMetadata('execution') || {};
    return { index: i, type: c.model.type, source: c.model.sharedModel.getSource(),
      count: code ? c.model.executionCount : null, outputs: code ? c.model.outputs.toJSON() : [],
      tags: c.model.getMetadata('tags') || [],
      seconds: t['shell.execute_reply'] && t['iopub.execute_input']
        ? (new Date(t['shell.execute_reply']) - new Date(t['iopub.execute_input'])) / 1000 : null }; }); }"""
)

# Every way in which a widget output was seen to fail in JupyterLab 4.6 with ipywidgets 8.1.
BROKEN_WIDGETS = r"""(cell, asked) => {
  const bad = [], children = [...cell.querySelectorAll('.jp-Cell-outputArea > .jp-OutputArea-child')];
  if (children.length < asked.length) bad.push(`${asked.length} outputs, ${children.length} in the page`);
  asked.forEach((isWidget, k) => { if (!isWidget || !children[k]) return;
    const o = children[k].querySelector(':scope > .jp-OutputArea-output');
    const text = (o && o.innerText || '').trim().slice(0, 300);
    if (!o || o.classList.contains('lm-mod-hidden')) return bad.push('hidden output (model closed?)');
    if (/Error displaying widget|Error creating widget|Loading widget\.\.\./.test(text)) bad.push(text);
    if (o.querySelector('.jupyter-widgets-error-widget')) bad.push('error view: ' + text);
    const visible = e => e.childElementCount === 0 && e.getBoundingClientRect().height > 0;
    if (![...o.querySelectorAll('*')].some(visible)) bad.push('empty view');
    o.querySelectorAll('img').forEach(g => {
      const shown = getComputedStyle(g).display !== 'none';
      if (shown && g.complete && !g.naturalWidth) bad.push('image does not decode'); });
    o.querySelectorAll('.clutils-panel-error').forEach(e => {
      if (e.innerText.trim()) bad.push('panel error: ' + e.innerText.trim()); });
    o.querySelectorAll('.widget-output [data-mime-type="application/vnd.jupyter.stderr"],'
      + '.widget-output [data-mime-type="application/vnd.jupyter.error"]')
      .forEach(e => bad.push('error in Output widget: ' + e.innerText.trim().split('\n').pop())); });
  return bad; }"""

# a run that trains may put another image there meanwhile: then that one counts
PICTURE = """async i => { for (;;) { const source = i.src;
  try { await i.decode(); if (!i.naturalWidth) throw Error('empty image');
    return [...new Uint8Array(await (await fetch(source)).arrayBuffer())]; }
  catch (error) { if (i.src === source) throw error; } } }"""


class Notebook:
    """One notebook, open in a page. Collects what goes wrong from the first moment on."""

    def __init__(self, page, server: Server):
        self.page, self.server = page, server
        self.page_errors: list[str] = []
        page.on("pageerror", lambda e: self.page_errors.append(f"pageerror: {e}"))
        page.on("console", self._console)

    def _console(self, message) -> None:
        if message.type == "error":
            self.page_errors.append(f"console: {message.text}")

    def open(self, name: str, timeout: float = 90) -> None:
        """Open the notebook `name` of the server's folder and wait for an idle kernel."""
        self.page.goto(self.server.url(f"lab/tree/{name}") + "&reset", wait_until="domcontentloaded")
        self.page.wait_for_function(IS_READY, arg=name, timeout=timeout * 1e3)
        self.page.evaluate("() => { window.jupyterapp.shell.collapseLeft(); }")
        self.page.evaluate("() => {" + NOTEBOOK + WATCH_KERNEL + "}")

    def unfold(self) -> None:
        """Open every folded section: what stands in one has no size, and no slider to press."""
        self.page.evaluate("() => window.jupyterapp.commands.execute('notebook:expand-all-headings')")

    def run_all(self, timeout: float = 120) -> None:
        """Run every cell with JupyterLab's own command and wait to the end; `problems` tells what failed."""
        # JupyterLab asks a fresh kernel for widgets before ipywidgets is imported, and the kernel grumbles
        # ('No such comm target'); that is over when it is quiet, and no fault of the notebook
        self.wait_quiet(timeout)
        # the command's promise is not awaited here: a hanging cell would then hang the test
        self.page.evaluate(
            "() => { window.__kernel = []; window.__all_ran = false;"
            " window.jupyterapp.commands.execute('notebook:run-all-cells')"
            ".finally(() => { window.__all_ran = true; }); }"
        )
        self.page.wait_for_function("() => window.__all_ran", timeout=timeout * 1e3)
        self.wait_quiet(timeout)

    def wait_quiet(self, timeout: float = 60, quiet: float = 0.3) -> None:
        """Wait until the kernel has been idle, with no cell running, for `quiet` seconds on end."""
        self.page.evaluate("() => { window.__quiet = 0; }")
        self.page.wait_for_function(IS_QUIET, arg=quiet * 1e3, timeout=timeout * 1e3)

    def cells(self) -> list[dict]:
        """Every cell: index, type, source, tags, execution count, outputs (nbformat), seconds it ran."""
        return self.page.evaluate(CELLS)

    def cell(self, index: int):
        """The cell's element, scrolled into view (works in every windowing mode)."""
        self.page.evaluate("async i => {" + NOTEBOOK + "await nb.scrollToItem(i, 'center'); }", index)
        element = self.page.locator(f'.jp-Notebook .jp-Cell[data-windowed-list-index="{index}"]')
        element.wait_for(state="attached")
        return element

    # what can go wrong ---------------------------------------------------------------------------------

    def cell_problems(self) -> list[str]:
        """Errors and stderr in outputs, and code cells that did not run."""
        found = []
        for cell in self.cells():
            for output in cell["outputs"]:
                if output["output_type"] == "error":
                    found.append(f"cell {cell['index']}: {output['ename']}: {output['evalue']}")
                elif output.get("name") == "stderr":
                    found.append(f"cell {cell['index']}: stderr: {''.join(output['text'])}")
            if cell["type"] == "code" and cell["source"].strip() and not cell["count"]:
                found.append(f"cell {cell['index']}: did not run")
        return found

    def widget_cells(self) -> list[int]:
        """Indices of the cells whose outputs ask for a widget."""
        return [cell["index"] for cell in self.cells() if any(map(asks_for_widget, cell["outputs"]))]

    def widget_problems(self) -> list[str]:
        """Widgets that the page does not show, shows broken, or that show an error."""
        found = []
        for cell in self.cells():
            asked = [asks_for_widget(output) for output in cell["outputs"]]
            if any(asked):
                texts = self.cell(cell["index"]).evaluate(BROKEN_WIDGETS, asked)
                found += [f"cell {cell['index']}: {text}" for text in texts]
        return found

    def kernel_problems(self) -> list[str]:
        """Every error and stderr the kernel sent, those of widget callbacks too, which no cell shows."""
        return self.page.evaluate("() => window.__kernel")

    def problems(self) -> list[str]:
        """All of the above and the page's own errors."""
        return [
            *self.cell_problems(),
            *self.widget_problems(),
            *(f"kernel: {text}" for text in self.kernel_problems()),
            *self.page_errors,
        ]

    # sliders and images ------------------------------------------------------------------------------

    def slider(self, cell, label: str = ""):
        """The handle of the cell's first visible slider whose label holds `label`."""
        rows = cell.locator(".widget-slider:visible").filter(has=self.page.locator(".noUi-handle"))
        if label:
            rows = rows.filter(has=self.page.locator(".widget-label", has_text=label))
        return rows.first.locator(".noUi-handle").first

    def picture(self, cell):
        """The cell's live image."""
        return cell.locator("img.widget-image").first

    def live_cells(self) -> list[int]:
        """Indices of the cells that show a slider and a live image."""
        return [
            index
            for index in self.widget_cells()
            if self.picture(self.cell(index)).count() and self.slider(self.cell(index)).count()
        ]

    def slider_changes_picture(self, cell, label: str = "", timeout: float = 30) -> bool:
        """Move the slider by one step with an arrow key; True when the image's bytes are then other ones.

        Raises AssertionError when either image is no PNG or the slider itself does not move.
        """
        handle, picture = self.slider(cell, label), self.picture(cell)
        before, source = picture_bytes(picture), picture.get_attribute("src")
        value = handle.get_attribute("aria-valuetext")  # in full; valuenow is rounded to one decimal
        at_the_end = float(handle.get_attribute("aria-valuenow")) >= float(
            handle.get_attribute("aria-valuemax")
        )
        handle.focus()
        self.page.keyboard.press("ArrowLeft" if at_the_end else "ArrowRight")
        if handle.get_attribute("aria-valuetext") == value:
            raise AssertionError(f"the slider {label!r} stays at {value} when a key is pressed")
        with contextlib.suppress(PlaywrightTimeout):  # the bytes below tell
            self.page.wait_for_function(
                "([i, s]) => i.src !== s && i.complete && i.naturalWidth > 0",
                arg=[picture.element_handle(), source],
                timeout=timeout * 1e3,
            )
        self.wait_quiet()
        after = picture_bytes(picture)
        for name, picture in (("before", before), ("after", after)):
            if not picture.startswith(b"\x89PNG"):
                raise AssertionError(f"the image {name} is no PNG: {picture[:8]!r}")
        return before != after


@contextlib.contextmanager
def ran(
    path: Path, chromium, width: int, height: int, timeout: float, environment: dict[str, str]
) -> Iterator[Notebook]:
    """A notebook in a page of this size, run to its end in that many seconds, with every section open.

    Windowing is off: every cell is in the page, so the scroll height is the true one.
    """
    with tempfile.TemporaryDirectory() as work:
        server = Server(path.resolve().parent, Path(work), windowing="none", environment=environment)
        try:
            notebook = Notebook(chromium.new_page(viewport={"width": width, "height": height}), server)
            notebook.open(path.name)
            notebook.run_all(timeout)
            notebook.unfold()
            yield notebook
        finally:
            server.close()


def asks_for_widget(output: dict) -> bool:
    return "application/vnd.jupyter.widget-view+json" in output.get("data", {})


def picture_bytes(picture) -> bytes:
    """The bytes behind an `ipywidgets.Image` (its src is a blob: URL), once the browser has decoded it."""
    return bytes(picture.evaluate(PICTURE))


@contextlib.contextmanager
def browser() -> Iterator:
    """A headless Chromium, where none is found playwright's own; it says how to get that."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=find_chromium(), headless=True, args=list(CHROMIUM_ARGUMENTS)
        )
        try:
            yield chromium
        finally:
            chromium.close()
