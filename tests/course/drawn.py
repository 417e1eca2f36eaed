"""What stands in a figure, and in a page."""

import io

import nbformat
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from nbconvert import HTMLExporter
from PIL import Image

from clutils import figures


def line(ax: Axes, label: str) -> tuple[np.ndarray, np.ndarray]:
    """The one line whose label begins with these words -> its x and y."""
    (found,) = [drawn for drawn in ax.lines if str(drawn.get_label()).startswith(label)]
    return np.asarray(found.get_xdata(), float), np.asarray(found.get_ydata(), float)


def inside(figure: Figure) -> bool:
    """No text reaches the outermost pixels of the image."""
    pixels = np.asarray(Image.open(io.BytesIO(figures.png(figure, 1.0))).convert("L"))
    return all((edge == 255).all() for edge in (pixels[0], pixels[:, 0], pixels[:, -1]))


def exported(widget) -> str:
    """The page that nbconvert, with no kernel and no widget's state, makes of a cell that shows this."""
    bundle = widget._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell("widget")]
    notebook.cells[0].outputs = [nbformat.v4.new_output("display_data", data=bundle)]
    return HTMLExporter().from_notebook_node(notebook)[0]
