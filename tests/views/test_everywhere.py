"""The views that a GPU makes, tried on the CPU: those of the batch formulas, in few operations."""

import shutil

import pytest
import torch

from clutils.views import Ahead, Augmentation, everywhere
from tests.views.inputs import pictures, seeded

CPU = torch.device("cpu")
STRONG = {"jitter": (0.9, 0.9, 0.9, 0.5), "grayscale": 0.3}


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("height", "width", "size"), [(32, 32, 32), (40, 27, 24), (20, 61, 33), (5, 3, 8)])
def test_views_are_those_of_the_batch_formulas(height, width, size, channels):
    for seed in range(12):
        images = pictures(16, height, width, channels, seed=seed)
        for given in (images, (255 * images).byte()):
            augment = Augmentation(size=size, blur=0.4, **(STRONG if seed % 2 else {}))
            drawn = augment.draw(16, height, width, seeded(seed))
            found = augment.apply_packed(given, everywhere.packed(drawn, CPU))
            assert found.shape == (16, channels, size, size) and found.dtype == torch.float32
            assert (found - augment.apply(given, drawn)).abs().max() <= 2e-5


@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
def test_all_orders_of_the_jitter_are_one_compiled_function_of_few_kernels():
    from torch._inductor import metrics

    metrics.reset()
    augment, images = Augmentation(size=24, **STRONG), (255 * pictures(16, 32, 32)).byte()
    for seed in range(12):
        drawn = everywhere.packed(augment.draw(16, 32, 32, seeded(seed)), CPU)
        found = augment.apply_packed(images, drawn, compiled=True)
        assert (found - augment.apply_packed(images, drawn)).abs().max() <= 1e-5
    assert 0 < metrics.generated_kernel_count <= 25  # once, for all orders; they were 123 operations


def test_numbers_drawn_ahead_are_used_for_the_call_that_they_were_drawn_for_alone():
    augment, images = Augmentation(size=12), pictures(8, 16, 16)
    ahead, taken = Ahead(augment), []
    ahead.augment.apply_packed = lambda *given: taken.append(given[1]) or torch.zeros(1)
    ahead(images, seeded(0))
    ahead.draw(seeded(1), CPU)
    kept = ahead._ready[4]
    used, generator = seeded(1), seeded(1)
    augment.draw(8, 16, 16, used)
    ahead(images, generator)
    assert taken[-1] is kept and torch.equal(generator.get_state(), used.get_state())
    for other in ("pictures", "generator", "setting"):
        ahead.draw(seeded(1), CPU)
        kept = ahead._ready[4]
        if other == "setting":
            augment.jitter = (0.1, 0.1, 0.1, 0.1)
        ahead(images[:4] if other == "pictures" else images, seeded(2 if other == "generator" else 1))
        assert taken[-1] is not kept
        ahead(images, seeded(0))
