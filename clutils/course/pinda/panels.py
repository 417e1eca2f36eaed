"""PiNDA under sliders: the Gaussian that a loss is turned into, and a run's noise as it was learned."""

import math

import matplotlib
import numpy as np
import torch
from torch import Tensor

from clutils import anatomy, figures
from clutils.course.panels import Panel, among, choose, log_slider, panel, player, slider
from clutils.course.pinda import detectors
from clutils.course.pinda import figures as pinda
from clutils.course.pinda.exercises import task_entropy
from clutils.figures import noise, style
from clutils.training.noise_maps import NoiseMaps

COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 255, 510, 1024, 4096)
REACH = 20.0  # of the axis of α: the standard deviation at chance with 255 negatives is 16
RANGES = {"of all steps": "run", "of this step alone": "step"}
EVEN = 0.02  # an AUROC nearer to 0.5 is not called a side


# ---- the derivation ----------------------------------------------------------------------------------------


def auxiliary_gaussian(positive: float = 0.6, count: int = 255, temperature: float = 0.3) -> Panel:
    """From similarities to the auxiliary Gaussian: p⁺ = γ as a bar, and the density of α | x ~ N(0, 1/γ).

    - positive: s⁺ of the anchor; count: K negatives, all at one similarity; temperature: τ

    Raises ValueError on a value outside its slider's range.
    """
    alpha = torch.linspace(-REACH, REACH, 801, dtype=torch.float64)
    figure, (left, right) = figures.new(10.2, 3.5, 1, 2, width_ratios=[1, 1.7])
    with style.course():
        looks = [{"color": "#9FC3DD", "edgecolor": style.BLUE}]
        looks.append({"color": "#F2C9A8", "edgecolor": style.VERMILLION, "hatch": "///"})
        bars = [left.barh(y, 0, height=0.6, **look)[0] for y, look in enumerate(looks)]
        notes = [left.text(0, y, "", va="center", fontsize=10) for y in (0, 1)]
        left.set_yticks([0, 1], ["p⁺ = γ", "the K negatives\ntogether"])
        left.set(xlim=(0, 1.25), ylim=(1.6, -0.6), xlabel="share of the softmax")
        left.set_xticks([0, 0.5, 1])
        left.grid(axis="y", visible=False)
        look = {"color": "#8A8A8A", "linestyle": "--", "linewidth": 1.4, "label": "N(0, 1): ℓ = 0"}
        # what moves lies on top of what stands still: this line and the legend stay above the band
        right.plot(alpha, pinda.density(0, alpha), **look, animated=True)
        band = right.fill([], [], color="#CFE2F0", zorder=0.9, label="± 1/√γ")[0]
        (curve,) = right.plot(alpha, 0 * alpha, color=style.BLUE, linestyle="-", label="N(0, 1/γ)")
        right.set(xlim=(-REACH, REACH), ylim=(0, 0.44), xlabel="α", ylabel="density of α | x")
        right.legend(loc="upper right")
    figures.describe(
        figure,
        "Two charts: bars of the positive's share of the softmax and of all negatives' share; and the bell "
        "curve of the auxiliary variable, with the range of one standard deviation around 0 and, dashed, the "
        "standard normal, which it never gets narrower than.",
    )

    def update(positive: float, count: int, similarity: float, temperature: float) -> str:
        s = torch.tensor([[positive]], dtype=torch.float64)
        negatives = torch.full((1, count), similarity, dtype=torch.float64)
        loss = torch.nn.functional.softplus(anatomy.contrast(s, negatives, temperature))[0]
        gamma = float(torch.exp(-loss))
        shares = gamma, float(-torch.expm1(-loss))
        for bar, note, share in zip(bars, notes, shares, strict=True):
            bar.set_width(share)
            note.set_text(f"{share:.3g}")
            note.set_x(share + 0.03)
        deviation = gamma**-0.5
        curve.set_ydata(pinda.density(loss, alpha))
        ends = deviation * torch.linspace(-1, 1, 101, dtype=torch.float64)
        under = torch.stack([ends, pinda.density(loss, ends)], dim=1)
        band.set_xy(torch.cat([under, under[[-1, 0]] * torch.tensor([1.0, 0.0])]).numpy())
        entropy = 0.5 * math.log(2 * math.pi * math.e / gamma)  # from the variance, not from the loss
        wide = ", wider than the image" if deviation > REACH else ""
        text = (
            f"ℓ = −log p⁺ = {float(loss):.3f}, so γ = {gamma:.3g} and α has the standard deviation "
            f"1/√γ = {deviation:.3g}{wide}. Its entropy is ½ log(2πe/γ) = {entropy:.4f} nats; "
            f"½ log 2πe + ℓ/2 = {float(task_entropy(loss)):.4f}."
        )
        return text.replace("-", "−")

    return panel(
        figure,
        update,
        positive=slider("s⁺ positive similarity", -1.0, 1.0, float(positive), 0.01),
        count=among("K negatives", COUNTS, count),
        similarity=slider("s⁻ of all negatives", -1.0, 1.0, 0.0, 0.01),
        temperature=log_slider("τ temperature", 0.05, 5.0, temperature),
    )


# ---- the maps as they are learned --------------------------------------------------------------------------


def noise_maps(
    maps: NoiseMaps, masks: Tensor | None = None, generator: torch.Generator | None = None
) -> Panel:
    """A run's noise on its images, step by step: the image, the scale, a sample, and image + noise.

    - maps: as kept by `training.noise_maps.NoiseRecorder`
    - masks: bool (N, H, W), True on the object: its outline is drawn, and the sentence says on which side of
      it the noise is
    - generator: of the random numbers, which are drawn once and are the same at every setting: a slider
      makes this noise stronger or other, and draws no new one. Drawn from a Gaussian, whatever the run's

    The strength multiplies the scale, and leaves a learned mean. The scale's map shows the learned scale.

    Raises ValueError where the maps have fewer than two steps, and on masks that don't fit them.
    """
    if len(maps.steps) < 2:
        raise ValueError(f"noise_maps: maps of the steps {maps.steps}; at least two are needed")
    if masks is not None:
        detectors.auroc(maps.scale[0].mean(dim=1), masks)  # says what is wrong with them, before a slider
    picture = _Noise(maps, masks, generator)
    channels = [name for name in noise.CHANNELS if name == "mean" or maps.pictures.shape[1] == 3]
    panel_ = player(
        picture.figure,
        picture.update,
        len(maps.steps),
        label="map, first to last",
        interval=400,
        picture=slider("image", 1, max(2, len(maps.pictures)), 1),
        strength=slider("strength, 1 = learned", 0.0, 3.0, 1.0, 0.05),
        channels=choose("channels of the scale", channels),
        colours=choose("dark to bright: range", RANGES),
    )
    panel_.inputs["picture"].max = len(maps.pictures)
    return panel_


class _Noise:
    """Four images side by side; a move costs one image's work, however many there are."""

    def __init__(self, maps: NoiseMaps, masks: Tensor | None, generator: torch.Generator | None) -> None:
        self.maps, self.masks = maps, masks
        generator = generator or torch.Generator().manual_seed(0)
        shape = maps.pictures.shape[1:]
        self.drawn = torch.randn(shape, generator=generator, device=generator.device).cpu()
        empty = np.zeros((*shape[1:], 3))
        with style.course():
            self.figure, axes = figures.new(9.6, 3.05, 1, 4)
            titles = ("image", "scale σ of the noise", "a sample of ε", "image + ε")
            look = {"interpolation": "nearest", "vmin": 0, "vmax": 1}
            self.images = [ax.imshow(empty, **look) for ax in axes]
            for ax, title in zip(axes, titles, strict=True):
                style.bare(ax)
                ax.set_title(title, loc="center")
            below = {"ha": "center", "va": "top", "fontsize": 9.5}
            self.notes = [ax.text(0.5, -0.03, " \n ", transform=ax.transAxes, **below) for ax in axes]
            self.lines = []
            for ax in axes[:2] if masks is not None else ():
                for color, width in (("white", 3.2), ("black", 1.2)):  # seen on dark and on light images
                    look = {"color": color, "linewidth": width, "linestyle": "-"}
                    self.lines += ax.plot([], [], **look, scalex=False, scaley=False)
            outlined = ", its object outlined" if masks is not None else ""
            figures.describe(
                self.figure,
                f"Four images: one of the data{outlined}; the scale of its noise as a map, after the "
                "chosen step of the run; a sample of the noise, mid grey where it is 0; and the image "
                "with it.",
            )

    def update(self, step: int, picture: int, strength: float, channels: str, colours: str) -> str:
        index = picture - 1
        x = self.maps.pictures[index].float() / (255 if self.maps.pictures.dtype == torch.uint8 else 1)
        scale, mean = self.maps.scale[step, index], self.maps.mean[step, index]
        noise = mean + strength * scale * self.drawn
        low, high = self._show_scale(step, index, channels, colours)
        for image, values in zip(
            (self.images[0], *self.images[2:]), (x, 0.5 + noise, x + noise), strict=True
        ):
            image.set_data(_colours(values))
        for line in self.lines:
            line.set_data(*outline(self.masks[index]))
        rms = float(noise.pow(2).mean().sqrt())
        ends = f"dark {low:.3g}, bright {high:.3g}"
        if channels == "colour":
            ends = f"each channel from 0 to {high:.3g}"
        self.notes[1].set_text(f"after step {self.maps.steps[step]:,}\n{ends}")
        self.notes[2].set_text(f"mid grey = 0\nrms {rms:.3g}")
        times = f" at {strength:g} times the learned scale" if strength != 1 else ""
        said = f"After step {self.maps.steps[step]:,} the noise of image {picture} has "
        said += f"an rms of {rms:.3g}{times}."
        return said + self._side(scale, index, channels)

    def _show_scale(self, step: int, index: int, channels: str, colours: str) -> tuple[float, float]:
        """Draw the map of the scale -> the values that are dark and bright."""
        steps = self.maps.scale[:, index] if colours == "run" else self.maps.scale[step : step + 1, index]
        if channels == "colour":
            high = max(float(steps.max()), 1e-12)
            self.images[1].set_data(_colours(self.maps.scale[step, index] / high))
            return 0.0, high
        values = noise.of_channels(steps, channels)
        low, high = float(values.min()), float(values.max())
        now = values[step if colours == "run" else 0]
        # where all is equal up to rounding there is no pattern to show
        even = high - low <= 1e-3 * high
        share = torch.zeros_like(now) if even else (now - low) / (high - low)
        self.images[1].set_data(matplotlib.colormaps["viridis"](share.numpy(), bytes=True))
        return low, high

    def _side(self, scale: Tensor, index: int, channels: str) -> str:
        """Side of the outline on which the noise is, in words; nothing without masks."""
        if self.masks is None:
            return ""
        shown = noise.of_channels(scale[None], "mean" if channels == "colour" else channels)
        found = float(detectors.auroc(shown, self.masks[index : index + 1]))
        if abs(found - 0.5) < EVEN:
            where = "about as much noise on the object as on the background"
        elif found < 0.5:
            where = "more noise on the background than on the object"
        else:
            where = "more noise on the object than on the background"
        return f" As a detector of the object the scale has an AUROC of {found:.2f}: {where}."


def outline(mask: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Sides of pixels between a mask (H, W) and the rest, as one line: x and y, broken by NaN."""
    mask = mask.cpu()
    rows, columns = torch.nonzero(mask[:, 1:] != mask[:, :-1]).double().T
    right, low = columns + 0.5, rows - 0.5
    upright = torch.stack([right, right, right * math.nan]), torch.stack([low, low + 1, low])
    rows, columns = torch.nonzero(mask[1:] != mask[:-1]).double().T
    left, under = columns - 0.5, rows + 0.5
    level = torch.stack([left, left + 1, left * math.nan]), torch.stack([under, under, under])
    x, y = (torch.cat([u.T.flatten(), v.T.flatten()]).numpy() for u, v in zip(upright, level, strict=True))
    return x, y


def _colours(values: Tensor) -> np.ndarray:
    """(C, H, W) in [0, 1], else cut off -> uint8 (H, W, 4), which matplotlib draws fastest."""
    rgb = (255 * values.float().expand(3, -1, -1).clamp(0, 1)).round().byte()
    return torch.cat([rgb, torch.full_like(rgb[:1], 255)]).permute(1, 2, 0).numpy()
