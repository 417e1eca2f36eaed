"""The toy of two modalities: captions say what a scene shows, and CLIP learns to find one by the other."""

from __future__ import annotations

import pytest
import torch

from clutils import data, losses, measures, training
from clutils.course import modalities
from clutils.data import ImageSet, scenes
from tests.losses.inputs import fails

SCENES = data.load("scenes", limit=400, size=32)


def test_a_caption_says_texture_place_and_shape_of_its_scene():
    words = modalities.captions(SCENES)
    assert words.shape == (400, modalities.WORDS) and set(words.unique().tolist()) == {0.0, 1.0}
    said = words[:, :10]
    assert torch.equal(said.argmax(dim=1)[said.any(dim=1)], SCENES.labels[said.any(dim=1)])
    assert 0.85 < said.any(dim=1).float().mean() < 0.95  # a tenth is missing
    idle = words[:, -modalities.IDLE :].mean(dim=0)
    assert ((idle > 0.4) & (idle < 0.6)).all()
    assert torch.equal(words, modalities.captions(SCENES)) and not torch.equal(
        words, modalities.captions(SCENES, seed=1)
    )


@pytest.mark.parametrize(("column", "row"), [(8, 8), (8, 24), (24, 8), (24, 24)])
@pytest.mark.parametrize("shape", scenes.SHAPES)
def test_place_shape_and_colour_are_read_from_picture_and_mask(monkeypatch, column, row, shape):
    monkeypatch.setattr(modalities, "FORGOTTEN", 0)
    x, y = torch.meshgrid(torch.arange(32) + 0.5, torch.arange(32) + 0.5, indexing="xy")
    dx, dy = (x - column).abs(), (y - row).abs()
    mask = {"disc": dx.hypot(dy) < 6, "square": dx.maximum(dy) < 6, "diamond": dx + dy < 7}[shape]
    image = (mask * torch.tensor([200, 20, 200])[:, None, None]).to(torch.uint8)
    one = ImageSet(image[None], torch.tensor([3]), scenes.CLASS_NAMES, mask[None], "one scene")
    said = modalities.captions(one)[0, : -modalities.IDLE].nonzero().flatten().tolist()
    place = 2 * (row > 16) + (column > 16)
    assert said == [3, 10 + 5, 18 + place, 22 + scenes.SHAPES.index(shape)]


def test_pictures_without_masks_are_refused():
    fails(lambda: modalities.captions(data.load("digits", limit=3)), "captions", "no masks")


def test_a_view_shows_one_modality_and_each_tower_sees_its_own():
    rows = modalities.pairs(data.load("scenes", limit=6, size=16)).vectors
    pictures, words = modalities.OneModality().several_views(rows, None)
    assert torch.equal(pictures + words, rows) and not (pictures * words).any()
    towers = modalities.TwoTowers().eval()
    both = towers(torch.cat([pictures, words]))
    close = {"rtol": 1e-5, "atol": 1e-6}
    torch.testing.assert_close(both[:6], towers.pictures(rows[:, :768].view(6, 3, 16, 16)), **close)
    torch.testing.assert_close(both[6:], towers.captions(rows[:, 768:]), **close)


def test_retrieval_counts_rows_whose_own_key_is_near_enough():
    queries = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    keys = torch.tensor([[1.0, 0.1], [1.0, 0.0], [1.0, 0.9]])
    assert modalities.retrieval(queries, keys) == pytest.approx(1 / 3)
    assert modalities.retrieval(queries, keys, among=3) == 1


def test_clip_with_a_learned_scale_finds_captions_of_new_pictures_and_the_other_way_round():
    train = modalities.pairs(data.load("scenes", limit=1500, size=16))
    test = modalities.pairs(data.load("scenes", split="test", limit=300, size=16), seed=1)
    torch.manual_seed(0)  # of the towers' weights
    run = training.Run(
        loss=losses.CLIP(learned_scale=True),
        data=train,
        encoder=modalities.TwoTowers(),
        augmentation=modalities.OneModality(),
        batch_size=64,
        steps=400,
        learning_rate=5e-3,
        precision="float32",
        threads=1,
    )

    def embedded():
        return [run.project(view) for view in run.augmentation.several_views(test.vectors, None)]

    before = embedded()
    run.finish(progress=False)
    pictures, captions = embedded()
    chance = 10 / 300
    assert modalities.retrieval(*before, among=10) < 2.5 * chance
    assert modalities.retrieval(pictures, captions, among=10) > 8 * chance
    assert modalities.retrieval(captions, pictures, among=10) > 8 * chance
    assert measures.modality_gap(pictures, captions) < measures.modality_gap(*before)
    assert run.history["effective_temperature"].iloc[-1] < 0.07  # positives stand out: colder
