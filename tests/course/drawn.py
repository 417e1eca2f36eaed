"""What stands in a figure."""

import io

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from clutils import figures


def line(ax: Axes, label: str) -> tuple[np.ndarray, np.ndarray]:
    """The one line whose label begins with these words -> its x and y."""
    (found,) = [drawn for drawn in ax.lines if str(drawn.get_label()).startswith(label)]
    return np.asarray(found.get_xdata(), float), np.asarray(found.get_ydata(), float)


def inside(figure: Figure) -> bool:
    """No text reaches the outermost pixels of the picture."""
    pixels = np.asarray(Image.open(io.BytesIO(figures.png(figure, 1.0))).convert("L"))
    return all((edge == 255).all() for edge in (pixels[0], pixels[:, 0], pixels[:, -1]))
