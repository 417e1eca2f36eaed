"""Images, their views and their neighbours, drawn as plain loops find them."""

import numpy as np
import pytest
import torch

from clutils import data, figures, views
from clutils.figures import pictures


@pytest.fixture(scope="module")
def scenes():
    return data.load("scenes", "test", limit=120)


def canvas(ax):
    return np.asarray(ax.images[0].get_array(), float)


def test_a_sheet_has_a_column_for_each_class_with_its_own_pictures(scenes):
    ax = pictures.sheet(scenes, each=3)
    shown, side = canvas(ax), 32
    for c in range(10):
        mine = [i for i in range(len(scenes)) if scenes.labels[i] == c][:3]
        for row, i in enumerate(mine):
            top, left = row * (side + 2), c * (side + 2)
            found = shown[top : top + side, left : left + side]
            np.testing.assert_allclose(found, scenes.images[i].permute(1, 2, 0).numpy() / 255, atol=1e-6)
    texts = [" ".join(t.get_text().split()) for t in ax.get_xticklabels()]
    assert texts == list(scenes.class_names)
    assert "horizontal stripes" in figures.alt(ax)


def test_a_sheet_works_without_labels_and_in_grey(scenes):
    unlabelled = data.ImageSet(scenes.images[:25], torch.full((25,), -1), (), None, "nobody's")
    assert "25 images. nobody's" in figures.alt(pictures.sheet(unlabelled, each=4))
    shown = canvas(pictures.sheet(data.load("digits", "test"), each=1))
    assert (shown[..., 0] == shown[..., 2]).all()
    with pytest.raises(ValueError, match="each is 0"):
        pictures.sheet(scenes, each=0)


def test_views_are_drawn_where_their_boxes_were_drawn(scenes):
    augment, draw = views.Augmentation(), torch.Generator().manual_seed(4)
    images = scenes.images[:5]
    parameters = [augment.draw(5, 32, 32, draw) for _ in range(2)]
    made = [augment.apply(images, p) for p in parameters]
    shown = pictures.Views(images)
    figure = shown.update(parameters, made)
    for k in range(2):
        for i in range(5):
            y, x, tall, wide = parameters[k].boxes[i].tolist()
            box = shown.boxes[k][i]
            assert box.get_xy() == (x - 0.5, y - 0.5)  # pixel (0, 0) reaches from -0.5 to 0.5
            assert (box.get_width(), box.get_height()) == (wide, tall)
            view = np.asarray(shown.shown[k][i].get_array())
            np.testing.assert_allclose(view, made[k][i].permute(1, 2, 0).numpy(), atol=1e-6)
            said = shown.notes[k][i].get_text()
            assert ("flipped" in said) == bool(parameters[k].flipped[i])
            assert ("grey" in said) == bool(parameters[k].grayscaled[i])
    assert figures.alt(figure).startswith("5 images with the boxes of two random crops")
    with pytest.raises(ValueError, match=r"draws for \[5\] and views of \[5\] images"):
        shown.update(parameters[:1], made[:1])


def test_the_overlap_of_two_crops_is_counted_in_pixels():
    augment, draw = views.Augmentation(crop_scale=(0.05, 1.0)), torch.Generator().manual_seed(0)
    first, second = (augment.draw(200, 32, 24, draw) for _ in range(2))
    for i, found in enumerate(pictures.overlap(first, second).tolist()):
        seen = []
        for p in (first, second):
            y, x, tall, wide = p.boxes[i].tolist()
            seen.append({(r, c) for r in range(y, y + tall) for c in range(x, x + wide)})
        assert found == pytest.approx(len(seen[0] & seen[1]) / len(seen[0] | seen[1]))


def test_neighbours_are_the_most_similar_by_cosine_and_never_the_picture_itself(scenes):
    z = torch.randn(120, 9, generator=torch.Generator().manual_seed(2))
    for query in (0, 7, 119):
        cosines = [
            (float(z[query] @ z[i] / (z[query].norm() * z[i].norm())), i) for i in range(120) if i != query
        ]
        expected = [i for _, i in sorted(cosines, reverse=True)[:4]]
        assert pictures.nearest(z, query, 4).tolist() == expected
    assert z.isfinite().all()
    ax = pictures.neighbours(scenes, {"random": z}, queries=[0, 7], k=4)
    same = sum(int(scenes.labels[j] == scenes.labels[q]) for q in (0, 7) for j in pictures.nearest(z, q, 4))
    assert f"random {same} of 8" in figures.alt(ax)
    frames = [p for p in ax.patches if p.get_linewidth() > 2]
    assert len(frames) == same
    with pytest.raises(ValueError, match="short has 119 rows for 120 images"):
        pictures.neighbours(scenes, {"short": z[1:]}, queries=[0])


def test_the_share_of_the_same_class_is_counted_over_all_pictures():
    draw = torch.Generator().manual_seed(0)
    z, labels = torch.randn(12, 4, generator=draw), torch.arange(12) % 3
    hits = 0
    for i in range(12):
        cosines = torch.cosine_similarity(z[i], z, dim=1)
        others = sorted((j for j in range(12) if j != i), key=lambda j: -float(cosines[j]))
        hits += sum(int(labels[j] == labels[i]) for j in others[:4])
    assert pictures.share_of_class(z, labels, 4) == pytest.approx(hits / 48)
