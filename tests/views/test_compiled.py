"""The compiled way to a view on a CPU: as the batch formulas, whatever the threads, and never in the way."""

import multiprocessing
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations

import pytest
import torch

from clutils import views
from clutils.views import Augmentation, Parameters, batched, compiled
from tests.views.inputs import pictures, seeded


@pytest.mark.parametrize("first", range(4))
def test_compiled_view_differs_from_the_batch_formulas(first):
    """In every order of the jitter, in bytes and floats, larger and smaller, and more than training does."""
    strong = Augmentation(size=24, jitter=(0.9, 0.9, 0.9, 0.5), jitter_prob=0.9, grayscale=0.1)
    for seed, order in enumerate(order for order in permutations(range(4)) if order[0] == first):
        for images in (pictures(16, 40, 33), (255 * pictures(16, 17, 60, seed=1)).byte()):
            drawn = strong.draw(16, *images.shape[2:], seeded(seed))
            drawn.order = torch.tensor(order)
            batch = batched.crop_and_colour(images, drawn, 24)
            assert (compiled.crop_and_colour(images, drawn, 24) - batch).abs().max() <= 1e-4


def test_compiled_way_is_not_taken_or_loaded_where_it_cannot_run(monkeypatch):
    assert views._compiled() is compiled
    images = pictures(16, 20, 20)
    made = Augmentation(size=16)(images, seeded())
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "numba", None)  # as if it weren't installed
        assert views._compiled.__wrapped__() is None
    with monkeypatch.context() as interpreted:
        interpreted.setattr("numba.config.DISABLE_JIT", 1)  # loops over pixels in plain Python: minutes
        assert views._compiled.__wrapped__() is None
    monkeypatch.setattr(views, "_compiled", lambda: None)
    batch = Augmentation(size=16)(images, seeded())
    assert not torch.equal(batch, made)  # the other way, indeed
    assert (batch - made).abs().max() <= 1e-4


def test_a_folder_that_numba_cannot_write_to_stops_it():
    """numba keeps nothing of a function that stands in no file, and refuses when told to."""
    names = {}
    exec("def double(x):\n    return 2 * x", names)
    assert compiled.compiled(names["double"])(1.5) == 3.0


def test_number_of_threads_or_the_rest_of_the_batch_changes_a_view():
    images = (255 * pictures(67, 64, 64)).byte()  # 67: no two threads get the same number of images
    augment = Augmentation(size=64, blur=0.5)
    assert images.numel() > 8 * compiled.VALUES_A_THREAD
    drawn = augment.draw(67, 64, 64, seeded())
    torch.set_num_threads(1)
    expected = augment.apply(images, drawn)
    for threads in (2, 3, 8):
        torch.set_num_threads(threads)
        assert torch.equal(augment.apply(images, drawn), expected)
    rows = {name: value[40:41] for name, value in vars(drawn).items() if name != "order"}
    alone = augment.apply(images[40:41], Parameters(order=drawn.order, **rows))
    assert torch.equal(alone[0], expected[40])


def test_views_of_several_threads_at_once_mix():
    """A training in the background and a slider's callback."""
    images = (255 * pictures(48, 64, 64)).byte()
    augment = Augmentation(size=64)
    expected = [augment(images, seeded(seed)) for seed in range(12)]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda seed: augment(images, seeded(seed)), range(12)))
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(found, expected, strict=True))


class SeededViews(torch.utils.data.Dataset):
    """Item i: the views of all images, drawn with seed i."""

    def __init__(self, images: torch.Tensor) -> None:
        self.images = images

    def __len__(self) -> int:
        return 6

    def __getitem__(self, seed: int) -> torch.Tensor:
        return Augmentation(size=64)(self.images, seeded(seed))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # of threads that a fork leaves behind
def test_view_of_a_forked_worker_hangs_or_differs():
    batches = SeededViews((255 * pictures(48, 64, 64)).byte())
    expected = [batches[seed] for seed in range(6)]  # this process has used its threads before it forks
    loader = torch.utils.data.DataLoader(
        batches, batch_size=None, num_workers=2, multiprocessing_context="fork", timeout=60
    )
    found = list(loader)
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(found, expected, strict=True))
