"""Sliders, menus, buttons and the panels that join them to a figure: the only place that knows ipywidgets.

A panel in a notebook is a figure, an update function and its sliders:

    figure, ax = figures.new(8, 4)
    (line,) = ax.plot(similarities, torch.zeros(201))

    def update(temperature):
        weights = anatomy.hardness_weights(similarities[None], temperature)[0]
        line.set_ydata(weights)
        return f"At τ = {temperature:.2f} the hardest negative gets {weights.max():.0%} of the push."

    controls.panel(figure, update, temperature=controls.log_slider("τ temperature", 0.02, 5, 0.2))
"""

from clutils.controls.comparing import Comparison, compare_runs
from clutils.controls.dilemma import dilemma
from clutils.controls.forces import family, forces, one_anchor
from clutils.controls.lab import Lab, LabRun, training_lab
from clutils.controls.live import LiveFigure
from clutils.controls.maps import map_settings, umap_beside
from clutils.controls.methods import key_ages
from clutils.controls.panels import Panel, button, choose, counts, log_slider, panel, player, slider
from clutils.controls.pinda import auxiliary_gaussian, noise_maps
from clutils.controls.sphere import circle, pushes
from clutils.controls.views import view_strength
from clutils.controls.w_explorer import gradient_scale
from clutils.controls.watching import watch

__all__ = [
    "Comparison",
    "Lab",
    "LabRun",
    "LiveFigure",
    "Panel",
    "auxiliary_gaussian",
    "button",
    "choose",
    "circle",
    "compare_runs",
    "counts",
    "dilemma",
    "family",
    "forces",
    "gradient_scale",
    "key_ages",
    "log_slider",
    "map_settings",
    "noise_maps",
    "one_anchor",
    "panel",
    "player",
    "pushes",
    "slider",
    "training_lab",
    "umap_beside",
    "view_strength",
    "watch",
]
