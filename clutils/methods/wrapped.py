"""A method that stands on another one's step: what it does not say itself, that one says."""

from dataclasses import field
from operator import attrgetter
from typing import Any, ClassVar

from torch import nn

from clutils.methods.base import Method
from clutils.settings import one_of


class WrappedMethod(Method):
    """Any method's step, with something added; that method, `.method`, has encoder, head and loss."""

    bases: ClassVar[dict[str, type[Method]]] = {}  # what it can stand on; `clutils.methods` knows all
    out, hidden = 0, None  # the base's
    base: str = field(default="simclr")
    base_settings: dict[str, Any] | None = field(default=None)

    def build(self, encoder: nn.Module, loss: nn.Module) -> None:
        base = self.under(self.base)
        self.base_settings = base.checked(self.base_settings, "base_settings")
        self.method = base(encoder, loss, **self.base_settings)

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(getattr(type(self), name, None), property):  # the base's, also where it is a module
            object.__setattr__(self, name, value)
        else:
            super().__setattr__(name, value)

    @classmethod
    def under(cls, base: str) -> type[Method]:
        """The method of this name. Raises ValueError where there is none, or none to stand on."""
        one_of(cls.__name__, "base", base, cls.bases)
        return cls.bases[base]

    @classmethod
    def default_loss(cls, base: str = "simclr", base_settings: Any = None, **settings: Any) -> nn.Module:
        return cls.under(base).default_loss(**cls.under(base).checked(base_settings, "base_settings"))

    @classmethod
    def rate_share(cls, base: str = "simclr", **settings: Any) -> float:
        return cls.under(base).rate_share()

    def settings(self) -> dict[str, Any]:
        """Settings as of every method; `base_settings` are the base's present ones."""
        return super().settings() | {"base_settings": self.method.settings()}

    def parameter_groups(self) -> list[dict[str, Any]]:
        return self.method.parameter_groups()

    @property
    def after_step_only(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(f"method.{name}" for name in self.method.after_step_only)


def _its(name: str) -> property:
    """Attribute of the wrapped method, as the wrapper's own."""
    return property(attrgetter(f"method.{name}"), lambda self, value: setattr(self.method, name, value))


for _name in (
    *("encoder", "head", "loss", "out", "half_type", "uses_labels", "takes_extra_views", "extra_views"),
    *("allocate", "after_step", "check_batch", "use", "networks", "chance"),
):
    setattr(WrappedMethod, _name, _its(_name))
