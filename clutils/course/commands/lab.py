"""`lab`: open the course in JupyterLab."""

import argparse
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from clutils.course.commands import copies
from clutils.files import printable

ROOT = Path(__file__).resolve().parents[3]
START = Path("notebooks", "00_start_here.ipynb")
LAB_DEFAULTS = Path(__file__).parent / "jupyterlab"
FOLDS = f"--LabApp.extra_labextensions_path={LAB_DEFAULTS / 'labextensions'}"  # Shift+Enter passes them by


def add_to(add: Callable[..., argparse.ArgumentParser]) -> None:
    what = "open the course in JupyterLab; takes JupyterLab's options, too, such as --port 9999"
    parser = add("lab", lab, what)
    parser.set_defaults(passes_on=True)
    stage = parser.add_argument
    stage(
        "--stage",
        metavar="NUMBER",
        help="number of the notebook to open on its stage path, in large type, for a lecture",
    )
    stage(
        "--minutes",
        type=int,
        choices=(50, 20),
        default=50,
        help="length of the lecture in minutes; default: 50",
    )
    stage(
        "--executed",
        action="store_true",
        help="outputs in the copy for the stage: the notebook is run before it opens, about a minute",
    )


def lab(options: argparse.Namespace) -> int:
    """Open the course in JupyterLab; what is not known here is passed on to it."""
    if importlib.util.find_spec("jupyterlab") is None:
        raise ImportError("JupyterLab is not installed")  # the line that is printed names the extra
    start = START
    if options.executed and options.stage is None:
        raise ValueError("--executed needs --stage, as in: --stage 02 --executed")
    if options.stage is not None:
        from clutils.course.book import running, stage

        stem = stage.find(options.stage).stem
        outputs = running.executed([stem]) if options.executed else None
        start = Path("notebooks", stage.write(options.stage, minutes=options.minutes, executed=outputs).name)
        own = str(stage.settings())
        os.environ |= {"JUPYTERLAB_SETTINGS_DIR": own, "JUPYTERLAB_WORKSPACES_DIR": own}
    elif (ROOT / START).is_file():
        try:
            mine, said = copies.follow(ROOT / START.parent)
        except OSError as error:
            said = [f"your own copies of the notebooks can't be written: {error}. The project's are opened"]
        else:
            start = START.parent / mine.name / START.name
        for line in said:
            print(printable(line), flush=True)
    command = lab_command(options.rest, start)
    # defaults of JupyterLab's settings, no question about news: what the reader has set goes before them
    config = [str(LAB_DEFAULTS), os.environ.get("JUPYTER_CONFIG_PATH", "")]
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(filter(None, config))
    # so that `python` in JupyterLab's own terminal is the one that has the course
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    if os.name == "nt":  # its exec returns to the prompt while the server runs
        return subprocess.run(command).returncode
    os.execv(command[0], command)  # Ctrl-C then reaches JupyterLab alone, which asks before it stops


def lab_command(rest: Sequence[str] = (), start: Path = START) -> list[str]:
    """The command that starts JupyterLab on the notebook `start`; `rest` comes last, so that it wins.

    Raises FileNotFoundError where the notebooks are not beside the package.
    """
    if not (ROOT / START).is_file():
        raise FileNotFoundError(
            f"no notebook at {ROOT / START}: get the project's whole folder and install it with "
            "\"pip install --editable '.[course]'\""
        )
    command = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={ROOT}"]
    command.append(f"--LabApp.default_url=/lab/tree/{start.as_posix()}")  # opened, and in the printed address
    # nothing pops up on stage, and nothing asks the network
    command.append(FOLDS)
    command += ["--LabApp.news_url=None", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")  # as in a container; JupyterLab refuses otherwise
    if sys.platform == "linux" and not any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))):
        command.append("--no-browser")  # else Python would look for one that runs in the terminal
    return [*command, *rest]
