"""Views: random augmentations of a whole batch at once, each image with its own draw, on the batch's device.

`Augmentation` is SimCLR's chain (Chen et al. 2020, appendix A): a random resized crop, a flip, colour jitter,
grayscale, blur. It draws (`draw`) and applies (`apply`) separately, so that a figure can show what was drawn:

    augment = Augmentation(size=32)
    view = augment(images, generator)                       # (N, C, H, W) uint8 -> (N, C, 32, 32) float32

    drawn = augment.draw(len(images), 96, 96, generator)    # boxes, flips, factors: one row an image
    view = augment.apply(images, drawn)

Each step is a plain function over the whole batch, in `batched`; a GPU takes the same steps in fewer
operations, by `everywhere`, and gives the same views to rounding.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from clutils.data.kinds import kind_of
from clutils.settings import OnlyFields, Setting, check, demand_room, one_of, setting, within
from clutils.views import batched, everywhere, graphs, sentences, vectors
from clutils.views.batched import NEUTRAL, Parameters, blur, change, check_images, crop_and_colour
from clutils.views.graphs import GraphAugmentation, NodeAugmentation

Augment = Callable[..., Tensor]  # called as augment(images, generator=...)
RISING = Setting(0, 1e6, open_below=True, entries=("smallest", "largest"), rising=True)
AUTO = "what suits the images"  # the name of the augmentation that `suiting` gives


@dataclass
class Augmentation(OnlyFields):
    """SimCLR's random view of every image of a batch.

    Every setting is an attribute that may be changed between two calls, and the random numbers don't depend
    on it: with the same seed a slider changes *these* crops and colours smoothly.

    - `size`: height and width of the view in pixels.
    - `crop_scale`: the crop's area as a share of the image's, drawn uniformly; (1, 1) keeps the whole image.
    - `flip`: probability of a left-right mirror.
    - `jitter`: how far brightness, contrast and saturation may go from 1, and hue from 0 (in turns, at
      most 0.5); 0 leaves that adjustment out.
    - `jitter_prob`: probability that an image is jittered at all.
    - `grayscale`, `blur`: probabilities. The blur's kernel is a tenth of the view wide, at least 3 pixels.
    - `crop_ratio`: the crop's width / height, drawn log-uniformly. `blur_sigma`: its range in pixels.
    - `check_inputs`: look for values outside [0, 1] in float images (a GPU must wait for the answer).

    The four adjustments of the jitter come in a random order, one a call (one an image, torchvision's way,
    took 1.4 times as long). To one-channel images saturation and hue do nothing.
    """

    kind = "pictures"
    size: int = setting(1, whole=True, default=32, about="side of the view in pixels")
    crop_scale: tuple[float, float] = setting(
        RISING, highest=1, default=(0.2, 1.0), about="area of the crop over the image's"
    )
    flip: float = setting(0, 1, default=0.5, about="probability of a left-right mirror")
    jitter: tuple[float, float, float, float] = setting(
        0, entries=batched.ADJUSTMENTS, default=(0.4, 0.4, 0.4, 0.1), about="reach of each adjustment"
    )
    jitter_prob: float = setting(0, 1, default=0.8, about="probability of the jitter")
    grayscale: float = setting(0, 1, default=0.2, about="probability of grayscale")
    blur: float = setting(0, 1, default=0.0, about="probability of a blur")
    crop_ratio: tuple[float, float] = setting(
        RISING, default=(3 / 4, 4 / 3), about="width of the crop over its height"
    )
    blur_sigma: tuple[float, float] = setting(
        RISING, default=(0.1, 2.0), about="standard deviation of the blur in pixels"
    )
    check_inputs: bool = True

    def __call__(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """A new view of each image: float32 in [0, 1], (N, C, size, size), on the images' device.

        images: uint8, or float in [0, 1], (N, C, H, W) with 1 or 3 channels. `generator` may live on any
        device; without one torch's global CPU generator is used. Raises ValueError for a wrong shape, type,
        range or setting.
        """
        check_images(images)
        room = len(images) * self.size * (images.shape[1] * self.size + images.shape[-1])
        demand_room("Augmentation", f"{len(images):,} views of {self.size:,} pixels a side", room)
        return self.apply(images, self.draw(len(images), images.shape[-2], images.shape[-1], generator))

    def draw(self, n: int, height: int, width: int, generator: torch.Generator | None = None) -> Parameters:
        """The random part alone: parameters for n images of height x width pixels."""
        self._check_settings()
        device = "cpu" if generator is None else generator.device
        order = torch.randperm(4, generator=generator, device=device).cpu()
        u = torch.rand(n, 31, generator=generator, device=device).cpu().double()
        box, flip, jitter, factor, gray, blur, sigma = u.split((22, 1, 1, 4, 1, 1, 1), dim=1)

        neutral = torch.tensor(NEUTRAL, dtype=torch.float64)
        reach = torch.tensor(self.jitter, dtype=torch.float64)
        lowest = torch.maximum(neutral - reach, torch.tensor([0.0, 0.0, 0.0, -0.5]))
        factors = lowest + factor * (neutral + reach - lowest)
        low, high = self.blur_sigma
        return Parameters(
            boxes=_random_boxes(box, height, width, self.crop_scale, self.crop_ratio),
            flipped=flip[:, 0] < self.flip,
            factors=torch.where(jitter < self.jitter_prob, factors, neutral).float(),
            order=order,
            grayscaled=gray[:, 0] < self.grayscale,
            sigma=torch.where(blur < self.blur, low + sigma * (high - low), 0.0)[:, 0].float(),
        )

    @torch.no_grad()
    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        """The view of each image that `parameters` describe: float32, (N, C, size, size)."""
        self._check_settings()
        batched.check(images, parameters)
        if self.check_inputs:
            batched.check_range(images)
        if images.device.type != "cpu":
            return self.apply_packed(images, everywhere.packed(parameters, images.device))
        view = crop_and_colour(images, parameters, self.size)
        return change(
            view, parameters.sigma > 0, lambda x, sigma: blur(x, sigma, self._kernel), parameters.sigma
        )

    @torch.no_grad()
    def apply_packed(self, images: Tensor, drawn: everywhere.Packed, compiled: bool = False) -> Tensor:
        """`apply` of numbers that are on the images' device: nothing waits. compiled: by torch.compile."""
        view = everywhere.compiled() if compiled else everywhere.view
        return view(images, drawn, self.size, self._kernel)

    @property
    def _kernel(self) -> int:
        return max(3, self.size // 10) | 1  # odd

    def _check_settings(self) -> None:
        check("Augmentation", self)
        if self.jitter[3] > 0.5:
            raise ValueError(f"Augmentation: jitter is {self.jitter!r}, but must be at most 0.5 in its hue")


class Ahead:
    """An augmentation on a GPU that may draw its next call's numbers while the GPU works on this step.

    `draw` does so, by the generator that the next call will come with; a call that comes with another, with
    other images or after a setting was changed draws its own. So the views are those of `augment`.
    """

    def __init__(self, augment: Augmentation, compiled: bool = False) -> None:
        self.augment, self.compiled = augment, compiled
        self._shape: tuple[int, int, int] | None = None  # of the first call's images, since the last `draw`
        self._ready: tuple[Any, ...] | None = None

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor:
        check_images(images)
        shape = (len(images), images.shape[-2], images.shape[-1])
        if self._shape is None:
            self._shape = shape
        ready, self._ready = self._ready, None
        own = shape, repr(self.augment)
        if ready is not None and ready[:2] == own and ready[2].equal(generator.get_state()):
            generator.set_state(ready[3])
            drawn = ready[4]
        else:
            drawn = everywhere.packed(self.augment.draw(*shape, generator), images.device)
        return self.augment.apply_packed(images, drawn, self.compiled)

    def draw(self, generator: torch.Generator, device: torch.device) -> None:
        """The numbers of the next call, on their way to the device; generator: as that call's will be."""
        if self._shape is None:
            return
        before, settings = generator.get_state(), repr(self.augment)  # a list in it may change where it is
        drawn = everywhere.packed(self.augment.draw(*self._shape, generator), device)
        self._ready = (self._shape, settings, before, generator.get_state(), drawn)
        self._shape = None


@dataclass
class Identity:
    """No augmentation: what comes in, as float32; uint8 images in [0, 1]."""

    def __call__(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """(N, ...) -> (N, ...) float32."""
        return images.float() / 255 if images.dtype == torch.uint8 else images.float()


_STILL: dict[str, Any] = dict.fromkeys(graphs.STEP, 0.0)
OTHERS: dict[str, dict[str, Callable[[], Augment]]] = {  # of kinds beside images; the first is usual
    "vectors": {
        "corruption": vectors.Corruption,
        "noise": vectors.Noise,
        "masking": vectors.Masking,
        "none": Identity,
    },
    "graphs": {
        "one of four": GraphAugmentation,
        "all four": partial(GraphAugmentation, one_each=False),
        **{
            f"only {name.replace('_', ' ')}": partial(GraphAugmentation, **_STILL | {name: 0.2})
            for name in graphs.STEP
        },
        "none": Identity,
    },
    "nodes": {"edges and attributes": NodeAugmentation, "none": Identity},
    "sentences": {
        "dropout": sentences.Dropout,
        "deletion": sentences.Deletion,
        "reordering": sentences.Reordering,
    },
}
_OURS = (Augmentation(), *(make() for makers in OTHERS.values() for make in makers.values()))
CLASSES: dict[str, Any] = {type(each).__name__: type(each) for each in _OURS}  # that a file can name
_WHOLE = {"crop_scale": (1.0, 1.0), "flip": 0.0}
_COLOURS_KEPT = {"jitter": (0.0, 0.0, 0.0, 0.0), "grayscale": 0.0}
PRESETS: dict[str, dict[str, Any]] = {
    "simclr": {},  # natural images: scenes, CIFAR, STL-10
    "digits": {"flip": 0.0, "jitter": (0.4, 0.4, 0.0, 0.0), "grayscale": 0.0},  # a mirrored 2 is no digit
    "crop": _COLOURS_KEPT,
    "colour": _WHOLE,
    "none": {**_WHOLE, **_COLOURS_KEPT},
}


def preset(name: str, size: int = 32) -> Augmentation:
    """A named choice of settings: 'simclr', 'digits', 'crop' (crop and flip alone), 'colour' (jitter and
    grayscale alone) or 'none' (the whole image at the right size)."""
    one_of("views.preset", "the augmentation", name, PRESETS)
    return Augmentation(size=size, **PRESETS[name])


def _random_boxes(
    u: Tensor, height: int, width: int, scale: tuple[float, float], ratio: tuple[float, float]
) -> Tensor:
    """Boxes as torchvision's RandomResizedCrop.get_params draws them, from uniform numbers u (N, 22): the
    first of ten tries that fits into the image, and if none does the largest central one of allowed ratio."""
    if scale[0] == 1:  # the whole image, even where its own ratio is not an allowed one
        return torch.tensor([0, 0, height, width]).repeat(len(u), 1)
    area = height * width * (scale[0] + u[:, :10] * (scale[1] - scale[0]))
    low, high = math.log(ratio[0]), math.log(ratio[1])
    aspect = (low + u[:, 10:20] * (high - low)).exp()
    wide, tall = (area * aspect).sqrt().round(), (area / aspect).sqrt().round()
    fits = (wide > 0) & (wide <= width) & (tall > 0) & (tall <= height)
    first = fits.byte().argmax(dim=1, keepdim=True)
    wide, tall = wide.gather(1, first)[:, 0], tall.gather(1, first)[:, 0]
    top, left = (u[:, 20] * (height - tall + 1)).floor(), (u[:, 21] * (width - wide + 1)).floor()
    boxes = torch.stack((top, left, tall, wide), dim=1).long()

    rows = min(height, max(1, round(width / ratio[0])))
    columns = min(width, max(1, round(height * ratio[1])))
    central = torch.tensor([(height - rows) // 2, (width - columns) // 2, rows, columns])
    return torch.where(fits.any(dim=1, keepdim=True), boxes, central)


# ---- by name -----------------------------------------------------------------------------------------------


def suiting(images: Tensor) -> Augment:
    """Augmentation for images (N, C, H, W): SimCLR's for colour; for one channel gentler crops, no mirror.

    A mirrored digit is another one or none, a fifth of one any. Another kind's is the first of `OTHERS`.
    """
    kind = kind_of(images).name
    if kind != "pictures":
        return next(iter(OTHERS[kind].values()))()
    size = min(images.shape[-2:])
    if images.shape[1] == 3:
        return Augmentation(size=size)
    return Augmentation(size=size, crop_scale=(0.5, 1.0), flip=0.0, grayscale=0.0)


def pair(images: Tensor, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Two views of each image by `suiting`, drawn from the seed: (N, C, H, W) -> two of these."""
    within("pair", "seed", seed, -(2**63), 2**63 - 1, whole=True)
    draw = torch.Generator().manual_seed(seed)
    augment = suiting(images)
    return augment(images, generator=draw), augment(images, generator=draw)


def named(name: str, images: Tensor) -> Augment:
    """`preset(name)` at the images' size; for another kind of samples one of its own, in `OTHERS`.

    Raises ValueError, listing what there is, on another name.
    """
    kind = kind_of(images).name
    if kind == "pictures":
        return preset(name, size=min(images.shape[-2:]))
    if name not in OTHERS[kind]:
        known = ", ".join(OTHERS[kind])
        raise ValueError(f"training: augmentation is {name!r}, but must be one for {kind}: {known}")
    return OTHERS[kind][name]()


def names(kind: str | None = None) -> tuple[str, ...]:
    """The augmentations that have a name: those of one kind of samples (`data.KINDS`), None = of all."""
    of: dict[str, Mapping[str, Any]] = {"pictures": PRESETS, **OTHERS}
    return tuple(dict.fromkeys(name for each in of if kind in (None, each) for name in of[each]))


def settings_of(augmentation: Any) -> dict[str, Any] | None:
    """Plain settings of an augmentation of the package's, {} = `Identity`; None for the caller's own."""
    name = type(augmentation).__name__
    if CLASSES.get(name) is not type(augmentation):
        return None
    own = {key: value for key, value in asdict(augmentation).items() if value != ()}  # of no groups nothing
    return own if name in ("Augmentation", "Identity") else {"name": name, **own}


def from_settings(settings: Mapping[str, Any]) -> Augment:
    """The augmentation that `settings_of` gave these."""
    own = dict(settings)
    name = own.pop("name", "Augmentation" if own else "Identity")
    return CLASSES[name](**own)


def name_of(settings: Mapping[str, Any], shape: Sequence[int] | None = None) -> str:
    """Name of an augmentation: `AUTO`, a preset, another kind's; else its class and what is not default.

    - settings: as `Run.configuration` has them, {} = `Identity`
    - shape: of the images, (N, C, H, W), or of the vectors, (N, D); None = not known
    """
    if not settings:
        return "none" if shape is not None and len(shape) == 2 else "identity"
    told = {name: value for name, value in settings.items() if name not in ("groups", "check_inputs")}
    told = {name: tuple(value) if isinstance(value, list) else value for name, value in told.items()}
    try:
        own: Any = from_settings(told)
    except TypeError:  # of another version: a setting that is not known here
        return f"Augmentation({', '.join(f'{name}={value!r}' for name, value in told.items())})"
    known: dict[str, Any] = {name: make() for of in OTHERS.values() for name, make in of.items()}
    if isinstance(own, Augmentation):
        size = own.size if shape is None else min(shape[-2:])
        known = {} if shape is None else {AUTO: suiting(torch.empty(0, *shape[1:]))}
        known |= {name: preset(name, size) for name in PRESETS}
    usual = vars(type(own)())
    changed = ", ".join(f"{name}={value!r}" for name, value in vars(own).items() if value != usual[name])
    called = f"{type(own).__name__}({changed})"
    return next((name for name, augmentation in known.items() if augmentation == own), called)
