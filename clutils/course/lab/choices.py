"""The lab's menus: which method, loss, data and settings can be chosen, and the run that they describe."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import ipywidgets as W
from torch import nn

from clutils import data as datasets
from clutils import encoders, losses, methods, training, views
from clutils.course.panels import _align, choose
from clutils.training import Run, Settings
from clutils.training.settings import BATCH_SIZE

ITS_OWN = "the method's own"
FOLDER = "a folder of your own"
OWN = "your own"
BATCH_SIZES = (32, 64, 128, 256, 512, 1024)
# the menus' widths: those that are always in view stand in one line of a JupyterLab cell on a laptop
FIRST = {"method": "210px", "loss": "240px", "data": "250px", "path": "390px", "steps": "150px"}
MORE = dict.fromkeys(("augmentation", "encoder"), "320px")
MORE |= {"batch_size": "200px", "seed": "200px"}
BEGINNING = {  # what is marked as a beginning
    "method": ("simclr", "moco", "supcon", "byol", "simsiam", "pinda", "graphcl", "grace"),
    "loss": ("NTXent", "Decoupled", "HardNegative", "MACL", "AttentionNCE", "SupCon"),
    "data": ("scenes", "digits", "vectors:digits", "graphs:motifs", "nodes:karate", "sentences:topics"),
}
MARKED = "★: to begin with. Offered is what fits the "
MOST_STEPS = 1_000_000  # hours, on any machine: more is a zero too many


class Choices:
    """The menus, and what is chosen in them.

    - menus: name -> menu or field; row: those that are always in view; more: the others, to unfold
    - given: further settings of the run, as the panel was given them
    - changed: called when a choice was made that other sliders may follow from

    Raises ValueError on a method, loss or data that there is not, and on a loss that does not fit the method.
    """

    def __init__(
        self,
        data: Any,
        method: str,
        loss: str | nn.Module | None,
        steps: int,
        given: Mapping[str, Any],
        changed: Callable[[], object],
    ) -> None:
        if method not in methods.catalogue():
            raise ValueError(
                f"training_lab: no method is called {method!r}; there are {', '.join(methods.catalogue())}"
            )
        self.given, self.changed, self._held = dict(given), changed, False
        self._own_data = None if isinstance(data, str) else data
        self._own_loss = loss if isinstance(loss, nn.Module) else None
        self._pictures: dict[Any, dict[str, Any]] = {}
        data_menu, path = _data_menu(data)
        batch_size = self.given.get("batch_size", BATCH_SIZE)
        seed = self.given.get("seed", Settings.seed)
        sizes = sorted({*BATCH_SIZES, batch_size})
        self.menus: dict[str, W.Widget] = {
            "method": W.Dropdown(description="method", tooltip=f"{MARKED}data"),
            "loss": W.Dropdown(description="loss", tooltip=f"{MARKED}method"),
            "data": data_menu,
            "path": W.Text(path, description="folder", placeholder="of class-named folders of images"),
            "steps": W.IntText(steps, description="steps"),
            "augmentation": W.Dropdown(description="augmentation"),
            "encoder": W.Dropdown(description="encoder"),
            "batch_size": choose("batch size", {f"{size:,}": size for size in sizes}, batch_size),
            "seed": W.IntText(seed, description="seed"),
        }
        if self._own_loss is not None and type(loss).__name__ not in losses.catalogue():
            known = ", ".join(losses.catalogue())
            raise ValueError(f"training_lab: loss is {type(loss).__name__}, but the panel knows {known}")
        fits = self._kind().name in methods.catalogue()[method].cls.sample_kinds
        self._offer_methods(method if fits or method != Settings.method else None)  # where none is named
        self._offer_losses(type(loss).__name__ if isinstance(loss, nn.Module) else loss)
        for name in ("augmentation", "encoder"):
            given = views.AUTO if self.given.get(name) is None else self.given[name]
            self._offer_fitting(name, given)
            if self.menus[name].value != given:
                fit = ", ".join(value for _, value in self.menus[name].options)
                kind = self._kind().name
                raise ValueError(f"training_lab: {name} is {given!r}, but {kind} can have {fit}")
        self._lay_out()
        self._show_path()
        self._first = {name: menu.value for name, menu in self.menus.items()}
        self.menus["data"].observe(self._show_path, "value")
        self.menus["data"].observe(self._fit_encoder, "value")
        self.menus["method"].observe(self._method_chosen, "value")
        for name in ("loss", "encoder", "data"):
            self.menus[name].observe(self._chosen, "value")

    def _lay_out(self) -> None:
        first, more = ([self.menus[name] for name in widths] for widths in (FIRST, MORE))
        _align(first)
        _align(more)
        for name, width in (FIRST | MORE).items():
            self.menus[name].layout.width = width
        wrap = W.Layout(flex_flow="row wrap", align_items="center")
        self.row = W.Box(first, layout=wrap)
        self.more = W.Accordion([W.Box(more, layout=wrap)], titles=("more settings",), selected_index=None)

    # ---- when something is chosen ----------------------------------------------------------------------

    def _offer_methods(self, chosen: str | None) -> None:
        """Those that fit the data, what is made for such data first, and the chosen one; None: the first."""
        kind, known = self._kind().name, methods.catalogue()
        names = dict.fromkeys([*methods.catalogue(kind), *filter(None, [chosen])])
        options = _marked("method", sorted(names, key=lambda name: known[name].cls.sample_kinds[0] != kind))
        if self.menus["method"].options != options:
            self.menus["method"].options = options
        self.menus["method"].value = chosen or options[0][1]

    def _offer_losses(self, wanted: str | None) -> None:
        fitting = [name for name, entry in losses.catalogue().items() if self.method_class.fits(entry.cls)]
        if wanted is not None and wanted not in fitting:
            method, known = self.menus["method"].value, ", ".join(fitting)
            raise ValueError(f"training_lab: loss is {wanted!r}, but {method} takes {known}")
        fitting.sort(key=lambda name: name not in BEGINNING["loss"])
        self.menus["loss"].options = ((ITS_OWN, ITS_OWN), *_marked("loss", fitting))
        self.menus["loss"].value = ITS_OWN if wanted is None else wanted

    def _offer_fitting(self, name: str, chosen: Any) -> None:
        """Augmentations or encoders of the data's kind; a choice that is none of them becomes 'auto'."""
        kind, given, menu = self._kind().name, self.given.get(name), self.menus[name]
        fit = (
            views.names(kind)
            if name == "augmentation"
            else [k for k, v in encoders.NAMES.items() if v == kind]
        )
        own = {} if given is None or isinstance(given, str) else {OWN: given}
        options = own | {one: one for one in (views.AUTO, *fit)}
        menu.options = list(options.items())
        menu.value = chosen if chosen in options.values() else views.AUTO

    def _show_path(self, change: Any = None) -> None:
        self.menus["path"].layout.display = "" if self.menus["data"].value == FOLDER else "none"

    def _fit_encoder(self, change: Any = None) -> None:
        """A method, encoder or augmentation for another kind of data gives way to what suits."""
        kind = self._kind()
        fits = kind.name in self.method_class.sample_kinds
        self._offer_methods(self.menus["method"].value if fits else None)
        for name in ("augmentation", "encoder"):
            self._offer_fitting(name, self.menus[name].value)

    def reset(self) -> None:
        """Every menu as it was at first."""
        self._held = True
        try:
            self.menus["data"].value = self._first["data"]
            self._offer_methods(self._first["method"])
            for name, value in self._first.items():  # the method before its losses
                self.menus[name].value = value
        finally:
            self._held = False
        self.changed()

    def _method_chosen(self, change: Any = None) -> None:
        now, self._held = self.menus["loss"].value, True
        try:
            stays = now != ITS_OWN and self.method_class.fits(losses.catalogue()[now].cls)
            self._offer_losses(now if stays else None)
        finally:
            self._held = False
        self.changed()

    def _chosen(self, change: Any = None) -> None:
        if not self._held:
            self.changed()

    # ---- what is chosen --------------------------------------------------------------------------------

    @property
    def data_name(self) -> str | None:
        """The chosen set, as `data.load` has it; None for an object of the caller's own."""
        chosen = self.menus["data"].value
        if chosen == FOLDER:
            return f"folder:{self.menus['path'].value.strip()}"
        return None if chosen == OWN else chosen

    @property
    def method_class(self) -> type[methods.Method]:
        return methods.catalogue()[self.menus["method"].value].cls

    def loss(self) -> nn.Module:
        """A fresh one of the chosen loss, at its own defaults."""
        name = self.menus["loss"].value
        own = self._own_loss
        if own is not None and name == type(own).__name__:
            return losses.catalogue()[name].cls(**{key: getattr(own, key) for key in own.hyperparameters()})
        if name == ITS_OWN:
            return self.method_class.default_loss(**self._method_settings())
        return losses.catalogue()[name].cls()

    def live_defaults(self) -> dict[str, Any]:
        """Everything that can be turned while a run trains, and what it starts from."""
        loss = self.loss()
        found = {name: getattr(loss, name) for name in loss.hyperparameters()}
        parameters, given = inspect.signature(self.method_class).parameters, self._method_settings()
        for name in self.method_class.live:
            usual = parameters[name].default
            if name == "penalty" and usual is None:
                usual = 1.0  # of PiNDA's, on images
            found[name] = given.get(name, usual)
        present = {name: value for name, value in found.items() if value is not None}
        if "hardest" in present:
            present["hardest"] = min(present["hardest"], self.negatives())
        return present | {"learning_rate": self._learning_rate()}

    def run(self, name: str | None, values: Mapping[str, Any]) -> Run:
        """A new run with what is chosen; of the same images, all runs have the same copy.

        - name: of the data, as `data_name` was when the start was asked for
        - values: where the sliders stand, as named by `live_defaults`

        Raises ValueError on settings that can't be, `data.Unavailable` where the data is not on this machine.
        """
        for field in (self.menus["steps"], self.menus["seed"]):
            field.value, used = field.value + 1, field.value
            field.value = used  # the page shows what is used: of 1e9, typed into it, that is 1
        steps = self.menus["steps"].value
        if steps > MOST_STEPS:
            raise ValueError(f"steps is {steps:,}, but must be at most {MOST_STEPS:,}")
        if name is not None:
            _check_here(name)
        given = {key: value for key, value in self.given.items() if key != "method_settings"}
        given |= {key: self.menus[key].value for key in ("encoder", "augmentation", "batch_size", "seed")}
        given |= {key: None for key in ("encoder", "augmentation") if given[key] == views.AUTO}
        if given["batch_size"] == BATCH_SIZE:
            given["batch_size"] = None  # the same, or all of a smaller set
        loss = self.loss()
        for key in loss.hyperparameters():
            if key in values:
                setattr(loss, key, values[key])
        if hasattr(loss, "check_hyperparameters"):
            loss.check_hyperparameters()
        live = {key: values[key] for key in self.method_class.live if key in values}
        if "penalty" in live and "penalty" not in self._method_settings() and live["penalty"] == 1.0:
            del live["penalty"]  # untouched: PiNDA chooses by its network
        run = Run(
            method=self.menus["method"].value,
            loss=loss,
            data=self._own_data if name is None else name,
            steps=steps,
            method_settings=self._method_settings() | live,
            **given | {"learning_rate": values["learning_rate"]},
        )
        key = (name, str(run.device), tuple(run.images.shape))
        own = {name: getattr(run, name) for name in ("data", "images", "labels")}
        vars(run).update(self._pictures.setdefault(key, own))  # which is otherwise fixed
        return run

    def negatives(self) -> int:
        """How many an anchor is compared with, in the queue or else in the batch: the power of two below."""
        queue = inspect.signature(self.method_class).parameters.get("queue_size")
        if queue is None:
            number = 2 * self.menus["batch_size"].value - 2
        else:
            number = self._method_settings().get("queue_size", queue.default)
        return 2 ** (max(1, number).bit_length() - 1)

    def _method_settings(self) -> dict[str, Any]:
        """Those given at the start that the chosen method has."""
        given = self.given.get("method_settings") or {}
        return {name: value for name, value in given.items() if name in self.method_class.setting_names()}

    def _learning_rate(self) -> float:
        rate = self.given.get("learning_rate")
        if rate is not None:
            return rate
        name = self.menus["encoder"].value
        if name == views.AUTO:
            name = self.method_class.usual_encoder(self._kind())
        return training.usual_rate(
            self.menus["method"].value,
            name,
            self.given.get("optimiser", Settings.optimiser),
            self.menus["batch_size"].value,
            **self._method_settings(),
        )

    def _kind(self) -> datasets.Kind:
        if self.menus["data"].value != OWN:
            return datasets.kind_called(str(self.menus["data"].value))
        return datasets.kind_of(getattr(self._own_data, "inputs", self._own_data))


def _marked(menu: str, names: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """A menu's options (label, value), those to begin with marked by a star."""
    return tuple((f"★ {name}" if name in BEGINNING[menu] else name, name) for name in names)


def _data_menu(data: Any) -> tuple[W.Dropdown, str]:
    """The menu of data, at what is given, and the path of the reader's own folder where it is one."""
    names = [name for name in datasets.NAMES if not name.endswith("PATH")]
    options = dict(_marked("data", names)) | {FOLDER: FOLDER}
    if not isinstance(data, str):
        return choose("data", {OWN: OWN} | options, OWN), ""
    if data.startswith("folder:"):
        return choose("data", options, FOLDER), data.removeprefix("folder:")
    if data in options.values():
        return choose("data", options, data), ""
    if data.startswith((*datasets.OWN, "vectors:", "graphs:", "nodes:", "sentences:")):
        return choose("data", options | {data: data}, data), ""
    raise ValueError(f"training_lab: no data called {data!r}; there are {', '.join(options.values())}")


def _check_here(name: str) -> None:
    """Raise where a set would have to be downloaded: a panel does not fetch gigabytes at a button."""
    if name == "folder:":
        raise ValueError("the folder's path is empty: type one, of class-named folders of images")
    try:
        if name not in ("scenes", "scenes-hard"):
            datasets.load(name, limit=1, download=False)
    except datasets.Unavailable as error:
        if name.startswith(datasets.OWN):
            raise
        raise datasets.Unavailable(
            f"{name} is not on this machine. 'python -m clutils data {name}' in a terminal fetches it; "
            "then press start again"
        ) from error
