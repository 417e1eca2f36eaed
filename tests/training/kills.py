"""The `train` command, killed again and again: `python -m tests.training.kills FOLDER` says what is left.

Each life of the run is a process, forked from this one so that it need not import everything anew, and ends
by SIGKILL: after a random time, or within a write (the file half there, written but not renamed, renamed).
One JSON line a kill, then one for what the run came to.
"""

import contextlib
import json
import mmap
import os
import random
import signal
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import torch

from clutils import __main__ as command_line
from clutils import files, training
from tests.runs import advance, past, same, weights

EVERY = 3  # steps between two checkpoints
STEPS = 5000  # never reached
KILLS = 8
WITHIN = ("open", "fsync", "replace", "replaced")  # moments of a write
HOW = ("within a write", "from its start", "within a write", "from its first step")  # in turns


def settings(folder: Path) -> list[str]:
    own = f"--data digits --batch-size 32 --steps {STEPS} --device cpu --checkpoint-every {EVERY}"
    own += " --method moco --method-set queue_size=70 --loss SSCL --set hardest=8 --set synthetic=4"
    return ["train", *own.split(), "--out", str(folder)]


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_within(moment: str, number: int) -> None:
    """Die at that moment of the write of that number, from now on."""
    writes = 0

    def at(function: Callable, before: Callable, after: Callable | None = None) -> Callable:
        def counted(*arguments):
            nonlocal writes
            writes += 1
            if writes < number:
                return function(*arguments)
            result = before(*arguments)
            return after(result) if after else result

        return counted

    def torn(path: Path, mode: str) -> None:
        with open(path, mode) as file:
            file.write(b"PK\x03\x04, and no more")
        die()

    if moment == "open":
        files.open = at(open, torn)
    elif moment == "fsync":
        os.fsync = at(os.fsync, die)
    elif moment == "replace":
        os.replace = at(os.replace, die)
    else:
        os.replace = at(os.replace, os.replace, die)


def live(arguments: list[str], reached: mmap.mmap, death: tuple[str, int] | None) -> None:
    """A life: the command, until someone kills it."""
    real = training.Run.step

    def step(run: training.Run) -> dict[str, float]:
        row = real(run)
        reached[:8] = struct.pack("q", run.steps_done)
        return row

    training.Run.step = step
    if death is not None:
        die_within(*death)
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        code = command_line.main(arguments)
    os._exit(code)


def kill_once(folder: Path, number: int, draw: random.Random) -> dict[str, object]:
    """The life of that number and its end; what it had reached and what is left."""
    arguments, checkpoint = settings(folder), folder / "checkpoint.pt"
    if checkpoint.exists():
        arguments.append("--resume")
    reached = mmap.mmap(-1, 8)
    how = HOW[number % len(HOW)]
    moment = WITHIN[number // 2 % len(WITHIN)]
    death = (moment, draw.randint(1, 8)) if how == "within a write" else None
    child = os.fork()
    if not child:
        try:
            live(arguments, reached, death)
        finally:
            os._exit(99)
    if death is None:
        while how == "from its first step" and not struct.unpack("q", reached[:8])[0]:
            time.sleep(0.002)
            if os.waitpid(child, os.WNOHANG)[0]:
                raise SystemExit(f"a life ended by itself: {arguments}")
        time.sleep(draw.uniform(0.0, 0.15))
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    state = training.checkpoint.read(checkpoint) if checkpoint.exists() else {"steps_done": 0, "history": []}
    history = folder / "history.csv"
    listed = pd.read_csv(history)["step"].tolist() if history.exists() else []
    return {
        "how": how if death is None else death[0],
        "killed": os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL,
        "reached": struct.unpack("q", reached[:8])[0],  # 0: it died before its first step
        "kept": state["steps_done"],
        "rows_kept": [row["step"] for row in state["history"]] == list(range(1, state["steps_done"] + 1)),
        "listed": len(listed) if listed == list(range(1, len(listed) + 1)) else -1,
        "left": sorted(path.name.split(".")[1] for path in folder.glob(".*.part")),
    }


def outcome(folder: Path) -> dict[str, object]:
    """The run as the kills left it beside one that nobody touched; then it goes on for a step and ends."""
    killed = training.resume(folder / "checkpoint.pt")
    given = ("method", "steps", "batch_size", "method_settings")
    again = training.Run(
        data="digits",
        device="cpu",
        loss=training.resume(folder / "checkpoint.pt").loss,
        **{name: killed.configuration[name] for name in given},
    )
    advance(again, killed.steps_done)
    moments = [run.optimiser.state_dict()["state"] for run in (killed, again)]
    code = command_line.main(
        ["train", "--resume", "--steps", str(killed.steps_done + 1), "--out", str(folder)]
    )
    return {
        "steps": killed.steps_done,
        "weights": same(weights(killed), weights(again)),
        "optimiser": all(same(moments[0][i], moments[1][i]) for i in moments[1]),
        "history": past(killed).equals(past(again)),
        "code": code,
        "files": sorted(path.name for path in folder.iterdir()),
    }


def main() -> None:
    torch.set_num_threads(1)
    folder = Path(sys.argv[1])
    advance(training.Run(data="digits", device="cpu", batch_size=32, steps=2), 1)  # loads what is lazy
    draw = random.Random("moco")
    for number in range(KILLS):
        print(json.dumps(kill_once(folder, number, draw)), flush=True)
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        end = outcome(folder)
    print(json.dumps(end), flush=True)


if __name__ == "__main__":
    main()
