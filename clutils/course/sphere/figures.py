"""Points under a loss: how near they are, who is compared with whom, who is pushed, where it takes them."""

from collections.abc import Sequence

import numpy as np
import torch
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Patch, Rectangle
from torch import Tensor

from clutils.course.sphere import descent
from clutils.course.sphere.descent import Trajectory
from clutils.figures import axes_for, describe, new, style
from clutils.losses import Loss


def name_of(loss: Loss) -> str:
    """The loss and its settings, as a title says it: "pair loss, m = 1"."""
    settings = (
        f"{'τ' if name == 'temperature' else declared.symbol or name} = {getattr(loss, name):g}"
        for name, declared in loss.ranges.items()
        if getattr(loss, name) is not None and not declared.switch
    )
    return ", ".join([style.title(loss.name), *settings])


# ---- four points ---------------------------------------------------------------------------------------


@style.in_course_style
def anchor_and_others(points: Tensor, ax: Axes | None = None) -> Axes:
    """An anchor, its positive and its negatives on the circle, joined to the anchor by their distances.

    - points: (2 + K, 2) unit vectors: the anchor, its positive, K negatives
    """
    ax = axes_for(ax, 6.4, 3.9)
    outline(ax)
    anchor, said = points[0], []
    for k, point in enumerate(points[1:]):
        name = "negative" if k else "positive"
        look, s = style.role(name), float(anchor @ point)
        ends = torch.stack([anchor, point])
        ax.plot(ends[:, 0], ends[:, 1], color=look["color"], linestyle="--", linewidth=1.4)
        ax.plot(*point.tolist(), **look, markersize=12, linestyle="none")
        _outside(ax, point, f"{name}\ns = {style.signed(s)}, d = {(2 - 2 * s) ** 0.5:.2f}", look["color"])
        said.append(f"{name} {s:.2f}")
    ax.plot(*anchor.tolist(), **style.role("anchor"), markersize=12, linestyle="none")
    _outside(ax, anchor, "anchor", style.BLACK)
    ax.set(xlim=(-2.3, 2.3))
    text = "A circle with an anchor and, joined to it by dashed lines, its positive and negatives"
    return describe(ax, f"{text}; similarities: {', '.join(said)}.")


def _outside(ax: Axes, point: Tensor, text: str, color: str) -> None:
    x, y = (1.13 * point).tolist()
    vertical = "bottom" if y > 0.5 else "top" if y < -0.5 else "center"
    ax.text(x, y, text, color=color, ha="left" if x > 0 else "right", va=vertical)


def outline(ax: Axes, reach: float = 1.28, tau: float | None = None) -> Circle:
    """Axes for points on the unit circle, in the colour of its τ: equal scales up to `reach`, no ticks."""
    look = (
        {"edgecolor": "#BDBDBD", "linewidth": 1.2}
        if tau is None
        else {"edgecolor": style.temperature(tau), "linewidth": 2}
    )
    circle = Circle((0, 0), 1, fill=False, zorder=1, **look)
    ax.add_patch(circle)
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    ax.set_axis_off()
    return circle


# ---- who is compared with whom -------------------------------------------------------------------------

ROLES = {1: "positive", -1: "negative", 0: "not compared"}
CELLS = {1: style.BLUE, -1: "#F6C9AE", 0: "white"}  # dark, light, white: distinguished without colour as well


@style.in_course_style
def comparisons(
    roles: Tensor,
    similarities: Tensor,
    rows: Sequence[str],
    columns: Sequence[str],
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Who is compared with whom: a row for each anchor, a column for each candidate.

    - roles: (A, C) whole numbers: 1 a positive, -1 a negative, 0 not compared
    - similarities: (A, C), written into the cells that count
    - rows, columns: the names of anchors and candidates

    Raises ValueError when the shapes do not fit.
    """
    shape = (len(rows), len(columns))
    if tuple(roles.shape) != shape or tuple(similarities.shape) != shape:
        raise ValueError(
            f"comparisons: roles is {tuple(roles.shape)} and similarities is {tuple(similarities.shape)}, "
            f"but {len(rows)} rows and {len(columns)} columns are named"
        )
    ax = axes_for(ax, 1.2 + 0.5 * shape[1], 1.4 + 0.5 * shape[0])
    for i, j in torch.cartesian_prod(torch.arange(shape[0]), torch.arange(shape[1])).tolist():
        role = int(roles[i, j])
        cell = {"facecolor": CELLS[role], "edgecolor": style.GREY, "linewidth": 0.6}
        ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, **cell))
        if role:
            look = {"color": "white", "weight": "bold"} if role > 0 else {"color": style.INK}
            number = style.signed(float(similarities[i, j]), 1)
            ax.text(j, i, number, ha="center", va="center", fontsize=9, **look)
    ax.set(xlim=(-0.5, shape[1] - 0.5), ylim=(shape[0] - 0.5, -0.5), aspect="equal")
    ax.set_xticks(range(shape[1]), columns)
    ax.set_yticks(range(shape[0]), rows)
    ax.tick_params(length=0, labeltop=True, labelbottom=False)
    ax.grid(False)
    ax.spines[:].set_visible(False)
    ax.set(xlabel="compared with", ylabel="anchor", title=title)
    positives, negatives = (int((roles[0] == role).sum()) for role in (1, -1))
    return describe(
        ax,
        f"{title or 'Who is compared with whom'}: a table of {shape[0]} anchors by {shape[1]} candidates; "
        f"in the first anchor's row positives: {positives}, negatives: {negatives}; the rest of it is empty.",
    )


@style.in_course_style
def key_to_roles(figure: Figure) -> None:
    """The key to the colours of `comparisons`, under the whole figure."""
    patches = [Patch(facecolor=CELLS[role], edgecolor=style.GREY, label=name) for role, name in ROLES.items()]
    figure.legend(handles=patches, loc="outside lower center", ncols=len(patches))


# ---- points that move ----------------------------------------------------------------------------------

ARROWS = {"angles": "xy", "scale_units": "xy", "scale": 1, "minlength": 0}  # lengths in data units
LONGEST = 0.38  # the strongest force, drawn, in radii
BEHIND = 0.3  # how solid a point on the far side of the sphere is
TILT = 0.5  # radians by which the sphere's pole leans towards the reader
INSIDE, OUTSIDE = 0.9, 1.1  # where the arrows of pull and push start: distinguished without colour


class Points:
    """Pairs of points on the circle or on the sphere, seen from the side: `update` moves them.

    - pictures: N; each has its own shade. View 1 is a disc, view 2 a ring, and a line joins them.
    """

    def __init__(self, ax: Axes, pictures: int):
        with style.course():
            outline(ax)
            self.shades = torch.tensor(colormaps["viridis"](np.linspace(0, 0.85, pictures))[:, :3])
            nowhere = torch.full((pictures, 2), torch.nan)
            (self.joins,) = ax.plot([], [], color=style.GREY, linewidth=1.2, linestyle="-", zorder=2)
            self.discs = ax.scatter(*nowhere.T, s=55, c=self.shades.numpy(), linewidths=0, zorder=3)
            self.rings = ax.scatter(*nowhere.T, s=100, facecolors="none", linewidths=1.8, zorder=3)
            arrows = ARROWS | {"width": 0.008, "zorder": 4}
            both = torch.zeros(2 * pictures, 2)
            self.arrows = [
                ax.quiver(*both.T, *both.T, color=style.role(role)["color"], **arrows)
                for role in ("positive", "negative")
            ]
            self.text = ax.text(0, 0, "", ha="center", va="center", fontsize=10.5, linespacing=1.5)

    def update(
        self,
        z1: Tensor,
        z2: Tensor,
        pull: Tensor | None = None,
        push: Tensor | None = None,
        strongest: float = 1.0,
        text: str = "",
    ) -> None:
        """Place the points z1, z2 (N, D) and, if given, the arrows of pull and push (2, N, D).

        - strongest: the force that is drawn at full length; stronger ones are drawn no longer
        """
        z = torch.stack([z1, z2])  # (2, N, D)
        flat, solid = _seen(z)
        self.discs.set_offsets(flat[0])
        self.rings.set_offsets(flat[1])
        colors = torch.cat([self.shades.expand(2, -1, -1), solid[..., None]], dim=2).numpy()
        self.discs.set_facecolors(colors[0])
        self.rings.set_edgecolors(colors[1])
        cut = torch.full_like(flat[:1], torch.nan)
        self.joins.set_data(*torch.cat([flat, cut]).transpose(0, 1).flatten(0, 1).T.numpy())
        for arrow, force, radius in zip(self.arrows, (pull, push), (INSIDE, OUTSIDE), strict=True):
            shown = torch.zeros_like(z) if force is None else force
            shown = shown * (strongest / shown.norm(dim=-1, keepdim=True).clamp(min=strongest))
            start = radius * flat.flatten(0, 1)
            along = _seen(shown * LONGEST / strongest)[0].flatten(0, 1)
            arrow.set_offsets(start)
            arrow.set_UVC(along[:, 0], along[:, 1])
        self.text.set_text(text)


def _seen(z: Tensor) -> tuple[Tensor, Tensor]:
    """(..., D) -> where it is on the page (..., 2), and how solid it looks (...)."""
    if z.shape[-1] == 2:
        return z, torch.ones_like(z[..., 0])
    x, y, up = z.unbind(dim=-1)
    cos, sin = torch.tensor(TILT).cos(), torch.tensor(TILT).sin()
    towards = up * sin - y * cos
    return torch.stack([x, up * cos + y * sin], dim=-1), torch.where(towards < 0, BEHIND, 1.0)


@style.in_course_style
def points(
    z1: Tensor,
    z2: Tensor,
    pull: Tensor | None = None,
    push: Tensor | None = None,
    text: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Two views of N images on the circle (N, 2) or the sphere (N, 3), with the forces on them.

    - pull, push: (2, N, D), from `descent.forces`; arrows of the pull start inside, of the push outside. The
      strongest is drawn longest.
    - text: in the middle

    Raises ValueError in other dimensions.
    """
    if z1.shape != z2.shape or z1.ndim != 2 or z1.shape[1] not in (2, 3):
        raise ValueError(
            f"points: z1 is {tuple(z1.shape)} and z2 {tuple(z2.shape)}, but (N, 2) or (N, 3) can be seen"
        )
    ax = axes_for(ax, 3.6, 3.6)
    Points(ax, len(z1)).update(z1, z2, pull, push, strongest(pull, push), text)
    body = "circle" if z1.shape[1] == 2 else "sphere"
    forces = "" if pull is None and push is None else ", with arrows for pull and push"
    said = f"; it says {text}" if text else ""
    return describe(ax, f"Two views each of {len(z1)} images as points on the {body}{forces}{said}.")


def strongest(*forces: Tensor | None) -> float:
    """The length of the longest arrow; 1 where nothing moves."""
    lengths = [float(force.norm(dim=-1).max()) for force in forces if force is not None]
    return max(lengths, default=0.0) or 1.0


@style.in_course_style
def key_to_points(figure: Figure, forces: bool = True) -> None:
    """The key to `points`, under the whole figure; without arrows where there are no forces."""
    disc = {"marker": "o", "linestyle": "none", "color": style.INK}
    handles = [
        Line2D([], [], **disc, label="view 1"),
        Line2D([], [], **disc, markerfacecolor="none", markersize=9, label="view 2"),
        Line2D([], [], color=style.role("positive")["color"], label="pull of the positive (inside)"),
        Line2D([], [], color=style.role("negative")["color"], label="push of the negatives (outside)"),
    ]
    handles = handles if forces else handles[:2]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), handlelength=1.4)


@style.in_course_style
def frames(losses: Sequence[Loss], paths: Sequence[Trajectory], at: Sequence[int]) -> Figure:
    """Start, middle and end as small multiples: a row for each loss, a column for each step.

    - paths: one for each loss, from `descent.move`; at: steps. The arrows of a row share one scale.

    Raises ValueError when a path is shorter.
    """
    short = [len(path) for path in paths if len(path) <= max(at)]
    if short:
        raise ValueError(f"frames: step {max(at)} was asked for, but a path ends at step {short[0] - 1}")
    shape = {"rows": len(losses), "columns": len(at), "squeeze": False}
    figure, axes = new(2.75 * len(at), 2.6 * len(losses) + 0.3, **shape)
    for row, (loss, path) in enumerate(zip(losses, paths, strict=True)):
        forces = [descent.forces(loss, path.z1[t], path.z2[t], path.labels) for t in at]
        longest = max(strongest(*pair) for pair in forces)
        for column, (t, (pull, push)) in enumerate(zip(at, forces, strict=True)):
            ax = axes[row, column]
            Points(ax, path.z1.shape[1]).update(
                path.z1[t], path.z2[t], pull, push, longest, state(path, t, name=False)
            )
            if not row:
                ax.set_title(f"step {t}", loc="center")
        axes[row, 0].text(-1.75, 0, name_of(loss).replace(", ", "\n"), rotation=90, ha="center", va="center")
    key_to_points(figure)
    gaps = "; ".join(
        f"{name_of(loss)}: {state(path, at[-1])}" for loss, path in zip(losses, paths, strict=True)
    )
    return describe(
        figure,
        f"Points on the circle at steps {', '.join(map(str, at))}, a row for each loss, with arrows for pull "
        f"and push. {gaps}.".replace("\n", ", "),
    )


def state(path: Trajectory, step: int, name: bool = True) -> str:
    """Text of a frame: the step, its loss and, on the circle, the widest gap between images."""
    lines = [f"step {step}"] if name else []
    lines.append(f"loss {float(path.loss[step]):.3f}")
    if path.z1.shape[2] == 2:
        lines.append(f"widest gap {float(descent.gaps(path.z1[step]).max()):.0f}°")
    return "\n".join(lines)


def evenly(pictures: int) -> Tensor:
    """Points at equal angles all round the circle, (images, 2), float64: uniformity's best."""
    angle = 2 * torch.pi * torch.arange(pictures, dtype=torch.float64) / pictures
    return torch.stack([angle.cos(), angle.sin()], dim=1)
