"""`ruler`: what a loss's value means: chance, collapse, the best reachable, and where a given value lies."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clutils.commands.arguments import SETTINGS, Add, BadUsage, Parser, positive, usage

if TYPE_CHECKING:
    from clutils.anatomy import Ruler, Stand


def add_to(add: Add) -> None:
    add(
        "ruler",
        ruler,
        "say whether a loss value is normal, beside the values at chance, after a collapse and at best",
        fill=_flags,
    )


def _flags(to_measure: Parser) -> None:
    from clutils import anatomy, losses

    names = ", ".join(losses.catalogue())
    to_measure.add_argument(
        "--loss", metavar="NAME", default="NTXent", help=f"loss, one of {names}; default: NTXent"
    )
    help = "setting of the loss, such as --set temperature=0.1; may be repeated"
    to_measure.add_argument("--set", **SETTINGS, help=help)
    to_measure.add_argument(
        "--batch-size",
        metavar="N",
        type=positive,
        default=256,
        help="number of images, each in two views; default: 256",
    )
    to_measure.add_argument(
        "--queue",
        metavar="K",
        type=positive,
        help="number of negatives in a queue, as in MoCo; default: no queue",
    )
    help = "number of classes, for a loss that uses labels, such as SupCon; default: no labels"
    to_measure.add_argument("--classes", metavar="C", type=positive, help=help)
    help = "measured value of the loss, to explain in one sentence; may be repeated; default: none"
    to_measure.add_argument("--value", type=float, **SETTINGS | {"metavar": "X"}, help=help)
    for name, default, what in (
        ("positive", anatomy.POSITIVE, "similarity of an anchor to its positive"),
        ("spread", anatomy.SPREAD, "standard deviation of an anchor's similarities to its negatives"),
    ):
        help = f"{what}, for the row 'trained' of the table; default: {default}"
        to_measure.add_argument(f"--{name}", metavar="X", type=float, default=default, help=help)
    help = "table of your run by step (history.csv, or a Watcher's), drawn over recorded runs"
    to_measure.add_argument("--curve", metavar="FILE", type=Path, help=help)
    help = "file for the figure of --curve; default: curve.png"
    to_measure.add_argument("--out", metavar="FILE", type=Path, default=Path("curve.png"), help=help)


def ruler(options: argparse.Namespace) -> int:
    """Print the marks of a loss's scale, a sentence on each value, a run beside recorded ones."""
    from clutils import anatomy
    from clutils.commands.chosen import chosen_loss

    if options.loss.lower() in map(str.lower, anatomy.OF_PROTOTYPES):
        near = "".join(f"; {value:g} is log {math.exp(min(value, 30)):.0f}" for value in options.value)
        raise BadUsage(
            f"--loss {options.loss}: its chance is the logarithm of the number of its prototypes{near}. "
            "It is a method here (train --method dino, swav), and its loss no function of similarities"
        )
    loss: Any = chosen_loss(options.loss, options.set)
    with usage():
        marks = anatomy.ruler(
            loss, options.batch_size, options.queue, options.positive, options.spread, options.classes
        )
        said = [marks.says(value) for value in options.value]
    if options.curve is not None:
        said += _beside_known(options.curve, options.out, marks)
    of = "" if marks.K is None else f": an anchor has {marks.K:,} negatives"
    queue = f", a queue of {options.queue:,}" if options.queue else ""
    print(f"{marks.loss}, a batch of {options.batch_size:,}{queue}{of}")
    far = f"positives 1, negatives equal and as far as the sphere allows: {-1 / (marks.n - 1):.2g}"
    far += f", in {marks.n - 1:,} dimensions or more"
    input_note = f"it works on {loss.input_note}"
    least = "not computed: no term of it is below 0" if marks.K is None else input_note
    least = marks.unbounded or least
    for name, value, when, why in (
        ("chance", marks.chance, "all similarities are 0", input_note),
        ("collapsed", marks.collapsed, "all embeddings are equal", "a constant feature has no correlation"),
        ("best reachable", marks.best, far, least),
        ("floor", marks.floor, "positives 1, negatives -1: below it no similarities lead", least),
    ):
        shown, of_it = ("none", why) if value is None else (f"{value:.4g}", when)
        print(f"{name:15} {shown:>9}   {of_it}")
    if marks.at_chance is not None and marks.trained is not None:
        state = f"positive {options.positive:g}, negatives of deviation {options.spread:g}"
        print(f"\n{'':15} {'loss':>9} {'W':>9} {'pull':>9} {'K_eff':>9}")
        print(_row("at chance", marks.at_chance))
        print(f"{_row('trained', marks.trained)}   {state}")
        if marks.trained.W is None:
            print(f"W is none: the pull of {loss.name} is not NT-Xent's, (1 - p+)/τ")
    print("".join(f"\n{sentence}" for sentence in said), end="\n" if said else "")
    return 0


def _beside_known(curve: Path, out: Path, marks: Ruler) -> list[str]:
    """Draw a run's curve over the recorded ones; what they are and what the last row is beside."""
    from clutils import files
    from clutils.figures import known_runs, png

    if out.suffix != ".png":
        raise BadUsage(f"--out {out}: a curve is drawn as .png")
    if not curve.is_file():
        raise BadUsage(f"--curve {curve}: there is no such file; `train` writes history.csv into its --out")
    with usage("--out"):
        files.demand_writable(out)
    own = known_runs.own_curve(curve, marks.chance, marks.best)
    files.write_atomically(out, png(known_runs.over_known(own, curve.name), scale=1.0))
    what = [f"{run}: {rows['what'].iloc[0]}" for run, rows in known_runs.read().groupby("run", sort=False)]
    return ["Recorded runs:", *what, *known_runs.in_words(own), f"written: {out}"]


def _row(name: str, stand: Stand) -> str:
    W = "none" if stand.W is None else f"{stand.W:.4g}"
    return f"{name:15} {stand.value:9.4g} {W:>9} {stand.pull:9.4g} {stand.K_eff:9.4g}"
