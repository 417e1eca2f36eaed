"""SimCL: SimCLR with noise on the representation instead of the image."""

import torch
from torch.nn import functional as F

from clutils.methods.base import Given, LossAndViews, Method, drawing_on
from clutils.settings import setting
from clutils.views.checks import drawn


class SimCL(Method):
    r"""Gaussian noise of unit length, times `strength`, is added to each view's features before the head.

    $$h_v = f_\theta(x_v) + s\,\frac{n_v}{\|n_v\|},\quad n_v\sim N(0, I)$$

    PiNDA's baseline for data without augmentations, where only the noise makes the views differ (arXiv
    2408.09929, section 4.2.1, which calls it SimCL). A unit is much or little depending on the features'
    length, which no one holds fixed.

    - strength: length of the noise, live
    """

    paper, year, equation = "SimCL, as PiNDA's baseline", 2024, "section 4.2.1"
    varies = True
    out, hidden = 128, None
    strength: float = setting(
        0, symbol="s", dial=(0, 2, "even"), default=1.0, about="length of the noise on the features"
    )

    def objective(self, given: Given) -> LossAndViews:
        features = self.features_of(torch.cat(given.views()))
        place = drawing_on(features.device, given.generator)
        noise = drawn(features.shape, features, place, draw=torch.randn)
        noisy = features + self.strength * F.normalize(noise, dim=1)
        z1, z2 = self.head(noisy).chunk(2)
        return self.compare(z1, z2, given.index), z1, z2
