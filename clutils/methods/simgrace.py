"""SimGRACE: no augmentation at all: the second view is the same graph, seen by a perturbed encoder."""

import torch
from torch import Tensor

from clutils import encoders
from clutils.methods.base import Given, LossAndViews, drawing_on
from clutils.methods.graphcl import GraphCL
from clutils.settings import setting


class SimGRACE(GraphCL):
    r"""Graph contrastive learning without augmentations of the data.

    $$h = f(x;\theta), \qquad h' = f(x;\theta'), \qquad \theta'_l = \theta_l + \eta\,\Delta_l,\quad
    \Delta_l\sim N(0,\sigma_l^2)$$

    σ_l is the standard deviation of the weights of θ_l, a tensor of the encoder. No gradient flows through
    the perturbed encoder. The head is the same. Loss and pairs are GraphCL's.

    - strength: η, live. The augmentation of a run is not used.

    Here the unperturbed graphs are the anchors, as in the paper and in the authors' transfer code. Their code
    for TU data sets (unsupervised_TU/simgrace.py) has it the other way round: anchors are the perturbed,
    constant graphs, and the gradient reaches all columns of the table.

    Xia et al. 2022, "SimGRACE" (arXiv 2202.03104); σ_l and the constant second view as in the authors'
    `gen_ran_output`.
    """

    paper, year, equation = "SimGRACE (Xia et al.)", 2022, ""
    varies = True
    out, hidden = 128, None
    strength: float = setting(
        0, symbol="η", dial=(0, 2, "even"), default=1.0, about="size of the noise on the weights"
    )

    def objective(self, given: Given) -> LossAndViews:
        """(B, V, 1 + F + V) graphs -> the loss, and both embeddings (B, out); the second is constant."""
        with torch.no_grad():
            other = self.head(self.perturbed(given.images, given.generator))
        z = self.head(self.features_of(given.images))
        return self.one_way(z, other).mean(), z, other

    def perturbed(self, graphs: Tensor, generator: torch.Generator) -> Tensor:
        """(B, features) by the encoder with noise on every weight; its batch statistics stay as they are."""
        place = drawing_on(graphs.device, generator)
        moved = {name: buffer.clone() for name, buffer in self.encoder.named_buffers()}
        for name, weight in self.encoder.named_parameters():
            noise = torch.randn(weight.shape, generator=place, device=place.device).to(weight)
            moved[name] = weight + self.strength * weight.std() * noise if weight.numel() > 1 else weight
        return torch.func.functional_call(self.encoder, moved, encoders.as_input(graphs)).float()
