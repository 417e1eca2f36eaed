"""Make the virtual environment that `make lab` and `make test` run in, or say in one line why not.

    python3 .ci/set_up.py ENVIRONMENT [EXTRA ...]

Costs a few milliseconds when the environment is ready: its stamp, written last, holds what it was made from,
and no longer matches once requirements.txt, pyproject.toml, the project's place or the Python behind it
changes. What a set-up that was cut short left half installed is found and installed again.

It stands here and not in clutils/ because it runs before the package is there, and on Pythons that can't read
the package: it keeps to what Python 2.7 understands, so as to say what to do, not raise a SyntaxError.
"""

from __future__ import print_function

import contextlib
import csv
import glob
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ENVIRONMENT_GB = 7.0  # measured on Linux, where torch comes with CUDA
DOWNLOADS_GB = 3.0  # what pip holds in the temporary folder until all of it is installed
NO_NETWORK = "resolution|[Nn]ew ?[Cc]onnection|unreachable|timed out|Timeout|ProxyError|versions: none"


class CannotSetUp(Exception):
    """Why not, and what to do: shown to the reader as it is."""


def read(name):
    with open(os.path.join(ROOT, name), "rb") as file:
        return file.read().decode("utf-8")


def declared(pattern):
    """What pyproject.toml says where the pattern's groups are."""
    return re.search(pattern, read("pyproject.toml")).groups()


def dotted(version):
    return ".".join(str(part) for part in version)


def python_of(environment):
    return os.path.join(environment, *(["Scripts", "python.exe"] if os.name == "nt" else ["bin", "python"]))


def stamps(environment, extras):
    """The files that say 'ready'. An environment with extras is ready without them, too."""
    names = ["ready", "-".join(["ready"] + extras)] if extras else ["ready"]
    return [os.path.join(environment, name) for name in names]


def fingerprint(environment):
    """What an environment is made from, in one line."""
    python = os.path.realpath(python_of(environment))
    parts = [read("requirements.txt"), read("pyproject.toml"), ROOT, os.path.abspath(environment), python]
    return hashlib.sha256("\0".join(parts).encode("utf-8")).hexdigest()


def is_ready(environment, extras):
    stamp = stamps(environment, extras)[-1]
    if not os.path.exists(python_of(environment)) or not os.path.exists(stamp):
        return False
    with open(stamp) as file:
        return file.read() == fingerprint(environment)


def is_sound(environment, floor):
    """Whether something can be installed into it: its Python runs, is new enough, and has pip."""
    code = "import sys, pip; sys.exit(sys.version_info[:2] < %r)" % (floor,)
    with open(os.devnull, "w") as nowhere:
        try:
            return subprocess.call([python_of(environment), "-c", code], stdout=nowhere, stderr=nowhere) == 0
        except OSError:  # no such file, or not one for this machine
            return False


def is_whole(record):
    """Whether a package lies there as its RECORD lists it; pip writes INSTALLER after all of its files."""
    folder = os.path.dirname(record)
    if not os.path.exists(record) or not os.path.exists(os.path.join(folder, "INSTALLER")):
        return False
    with open(record) as file:
        names = [row[0] for row in csv.reader(file) if row]
    return all(name.endswith(".pyc") or os.path.exists(os.path.join(folder, "..", name)) for name in names)


def forget_halves(environment):
    """Take half-installed packages off pip's list, so that pip installs them again. Returns their names."""
    on_windows = os.path.join(environment, "Lib", "site-packages")
    packages = (glob.glob(os.path.join(environment, "lib", "python*", "site-packages")) or [on_windows])[0]
    folders = glob.glob(os.path.join(packages, "*.dist-info"))
    halves = [folder for folder in folders if not is_whole(os.path.join(folder, "RECORD"))]
    for folder in halves + glob.glob(os.path.join(packages, "~*")):  # so pip calls what it is about to remove
        if os.path.isdir(folder):
            shutil.rmtree(folder)
        else:
            os.remove(folder)
    return [os.path.basename(folder).split("-")[0] for folder in halves]


def check_python(floor):
    if sys.version_info[:2] < floor:
        raise CannotSetUp(
            "needs Python %s or newer, found %s at %s: install a newer one and name it, "
            "as in PYTHON=python3.12 make lab" % (dotted(floor), dotted(sys.version_info[:3]), sys.executable)
        )
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        version = dotted(sys.version_info[:2])
        raise CannotSetUp(  # noqa: B904  'from None' is no Python 2
            "the Python at %s has no venv module: on Debian and Ubuntu run 'sudo apt install python%s-venv', "
            "then this again" % (sys.executable, version)
        )


def check_place(environment):
    """What is no environment is left alone, whatever VENV= says."""
    there = os.listdir(environment) if os.path.isdir(environment) else []
    if os.path.isfile(environment) or (there and "pyvenv.cfg" not in there):
        raise CannotSetUp(
            "%s is there and is no virtual environment: move it away, or name another place, "
            "as in VENV=.venv2 make lab" % os.path.abspath(environment)
        )


def disk_of(folder):
    """Which disk a folder lies on, and how many GB are free there."""
    return os.stat(folder).st_dev, shutil.disk_usage(folder).free / 1e9


def check_disk(environment):
    """Room for the environment and for pip's downloads, which may lie on one disk or on two."""
    needs = {}
    for folder, size in [(environment, ENVIRONMENT_GB), (tempfile.gettempdir(), DOWNLOADS_GB)]:
        folder = os.path.abspath(folder)
        while not os.path.isdir(folder):
            folder = os.path.dirname(folder)
        device, free = disk_of(folder)
        folder, before, free = needs.get(device, (folder, 0.0, free))
        needs[device] = (folder, before + size, free)
    for folder, size, free in needs.values():
        if free < size:
            raise CannotSetUp(
                "needs about %.0f GB of disk at %s, found %.1f GB free: free some, or name places on "
                "another disk, as in VENV=/big/venv TMPDIR=/big make lab" % (size, folder, free)
            )


def install(environment, *arguments):
    """Run pip, its words shown as they come; where it fails, say why."""
    command = [python_of(environment), "-m", "pip", "install", "--disable-pip-version-check"]
    command += arguments
    pip = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, universal_newlines=True)
    said = ""
    try:
        for line in pip.stderr:
            sys.stderr.write(line)
            said += line
        code = pip.wait()
    finally:  # whoever stops us stops pip: it must not go on in an environment that another set-up takes over
        if pip.poll() is None:
            pip.terminate()
            pip.wait()
    if code == 0:
        return
    if code < 0:
        why = "pip was killed by signal %d, for want of memory perhaps: close other programs" % -code
    elif "No space left" in said:
        why = "the disk is full (about %.0f GB are needed): free some" % (ENVIRONMENT_GB + DOWNLOADS_GB)
    elif re.search(NO_NETWORK, said):
        why = "pip can't reach its packages: connect to the network"
    else:
        why = "pip failed with code %d, its own words are above: mend what they name" % code
    raise CannotSetUp(why + ", then this again")


@contextlib.contextmanager
def alone():
    """Two set-ups of one project at a time would trip over each other: the second waits."""
    with open(os.path.abspath(__file__)) as file:
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        except (ImportError, OSError):  # Windows has none, nor have some network disks
            pass
        yield


def set_up(environment, extras):
    floor = tuple(int(part) for part in declared(r'requires-python = ">=(\d+)\.(\d+)"'))
    with alone():
        if is_ready(environment, extras):  # by another set-up, that this one waited for
            return
        if not is_sound(environment, floor):
            check_python(floor)
            check_place(environment)
            check_disk(environment)
            print("Setting up %s: a few minutes, once" % environment)
            sys.stdout.flush()
            if subprocess.call([sys.executable, "-m", "venv", "--clear", environment]) != 0:
                raise CannotSetUp("python -m venv failed, its own words are above")
        halves = forget_halves(environment)
        if halves:
            print("The last set-up was cut short: installing %s again" % ", ".join(halves))
            sys.stdout.flush()
        # the build's own requirement first: an update that needs nothing new then needs no network either
        install(environment, *declared(r'requires = \["(.*?)"\]'))
        package = ".[%s]" % ",".join(extras) if extras else "."
        install(environment, "--no-build-isolation", "--editable", package)
        for stamp in stamps(environment, extras):
            with open(stamp, "w") as file:
                file.write(fingerprint(environment))


def main(arguments):
    if not arguments:
        print(__doc__)
        return 2
    environment, extras = arguments[0], arguments[1:]
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        if not is_ready(environment, extras):
            set_up(environment, extras)
    except CannotSetUp as error:
        sys.stderr.write("clutils set-up: %s\n" % error)
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("clutils set-up: stopped; the same command goes on from here\n")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
