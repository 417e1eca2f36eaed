"""The figures and panels of notebook 03 draw what a plain loop computes, and say it in words."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex

from clutils import controls, data, figures, maps, training, views
from clutils.figures import maps as drawn
from clutils.figures import pictures
from clutils.figures import training as curves


@pytest.fixture(scope="module")
def scenes():
    return data.load("scenes", "test", limit=120)


def canvas(ax):
    return np.asarray(ax.images[0].get_array(), float)


# ---- pictures ----------------------------------------------------------------------------------------------


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
    assert "25 pictures. nobody's" in figures.alt(pictures.sheet(unlabelled, each=4))
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
    assert figures.alt(figure).startswith("5 pictures with the boxes of two random crops")
    with pytest.raises(ValueError, match=r"draws for \[5\] and views of \[5\] pictures"):
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
    figure = pictures.neighbours(scenes, {"random": z}, queries=[0, 7], k=4)
    same = sum(int(scenes.labels[j] == scenes.labels[q]) for q in (0, 7) for j in pictures.nearest(z, q, 4))
    assert f"random {same} of 8" in figures.alt(figure)
    frames = [p for p in figure.axes[0].patches if p.get_linewidth() > 2]
    assert len(frames) == same
    with pytest.raises(ValueError, match="short has 119 rows for 120 pictures"):
        pictures.neighbours(scenes, {"short": z[1:]}, queries=[0])


# ---- training ----------------------------------------------------------------------------------------------

ROWS = [
    {"step": k + 1, "loss": 5.0 - 0.1 * k, "alignment": 1.0 - 0.01 * k, "uniformity": -2.0 - 0.02 * k}
    for k in range(10)
]


def test_progress_shows_the_history_between_chance_and_floor():
    picture = curves.Progress(40, chance=5.2, floor=1.5, baselines={"raw": 0.3, "untrained": 0.31})
    figure = picture.update(ROWS, {0: 0.3, 10: 0.6}, "step 10 of 40")
    loss, shape, accuracy = figure.axes
    assert picture.loss.get_xydata().tolist() == [[r["step"], r["loss"]] for r in ROWS]
    assert picture.alignment.get_ydata()[-1] == ROWS[-1]["alignment"]
    assert picture.uniformity.get_ydata()[-1] == ROWS[-1]["uniformity"]
    assert picture.accuracy.get_xydata().tolist() == [[0, 0.3], [10, 0.6]]
    assert {line.get_ydata()[0] for line in loss.lines[1:]} == {5.2, 1.5}
    assert {line.get_ydata()[0] for line in accuracy.lines if line is not picture.accuracy} == {0.3, 0.31}
    heights = sorted(t.get_position()[1] for t in accuracy.texts)
    assert heights[1] - heights[0] > 0.08, "the names of two equal baselines are written over each other"
    assert all(ax.get_xlim() == (0, 40) for ax in (loss, shape, accuracy))
    text = figures.alt(figure)
    assert "the loss goes from 5.00 to 4.10 (chance is 5.20)" in text
    assert "kNN accuracy from 0.30 to 0.60, raw 0.30, untrained 0.31" in text


def test_progress_without_a_chance_level_is_as_high_as_the_loss():
    rows = [{"step": k, "loss": 4.1 - k, "alignment": 1.0, "uniformity": -1.0} for k in (1, 2, 3)]
    figure = curves.Progress(3, chance=None).update(rows, {})
    assert figure.axes[0].get_ylim() == pytest.approx((0, 1.1 * 3.1))
    assert "chance" not in figures.alt(figure)


def test_progress_of_nothing_is_empty_or_refused():
    assert "fill while a run trains" in figures.alt(curves.Progress(5).update([], {}))
    with pytest.raises(ValueError, match="history is empty"):
        curves.progress([], {})


def test_similarities_in_the_table_and_their_spread_are_the_batchs_own():
    draw = torch.Generator().manual_seed(0)
    z1, z2 = torch.randn(2, 6, 5, generator=draw)
    rows = [v / v.norm() for v in (*z1, *z2)]
    ax = curves.similarity_table(z1, z2)
    expected = [[float(a @ b) for b in rows] for a in rows]
    np.testing.assert_allclose(canvas(ax), expected, atol=1e-6)
    outlined = {(int(p.get_x() + 0.5), int(p.get_y() + 0.5)) for p in ax.patches}
    assert outlined == {(i, (i + 6) % 12) for i in range(12)}
    negatives = [expected[i][j] for i in range(12) for j in range(12) if i % 6 != j % 6]
    assert f"negatives at {np.mean(negatives):.2f}" in figures.alt(ax)

    spread = curves.similarity_spread(z1, z2)
    outline = next(p for p in spread.patches if p.get_label() == "negatives")
    counts, _ = np.histogram(negatives, np.linspace(-1, 1, 81))
    np.testing.assert_allclose(outline.get_data().values, counts / len(negatives), atol=1e-6)


def test_accuracies_show_each_value_and_the_mean():
    ax = curves.accuracies({"raw": [0.8, 0.9], "trained": [0.95]}, "probe")
    assert "raw 0.850 (0.800 to 0.900); trained 0.950." in figures.alt(ax)
    means = [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "D"]
    assert means == pytest.approx([0.85, 0.95])
    with pytest.raises(ValueError, match="at least one value"):
        curves.accuracies({"raw": []})


# ---- maps --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def world():
    """Ten classes around ten centres: embeddings, a map that keeps them, labels."""
    draw = torch.Generator().manual_seed(0)
    labels = torch.arange(120) % 10
    z = torch.randn(10, 20, generator=draw)[labels] + 0.2 * torch.randn(120, 20, generator=draw)
    return z, maps.pca(z), labels


def test_each_class_has_its_own_colour_and_marker_and_its_own_points(world):
    _, at, labels = world
    ax = drawn.embedding_map(at, labels, [f"class {c}" for c in range(10)], "a title")
    looks = {(to_hex(m.get_facecolor()[0]), str(m.get_paths()[0].vertices.tolist())) for m in ax.collections}
    assert len(looks) == 10
    low, high = at.min(axis=0), at.max(axis=0)
    scaled = 0.5 + (at - (low + high) / 2) / (high - low).max()
    for c, marks in enumerate(ax.collections):
        np.testing.assert_allclose(marks.get_offsets(), scaled[(labels == c).numpy()], atol=1e-6)
    share = maps.neighbour_share(at, labels)
    assert f"a title: of a point's ten nearest, {share:.0%} share its class" in figures.alt(ax)
    assert {t.get_text() for t in ax.texts} == ({f"class {c}" for c in range(10)} if share >= 0.5 else set())
    with pytest.raises(ValueError, match=r"120 labels need a row of two each|\(119, 2\)|labels"):
        drawn.embedding_map(at[1:], labels)


def test_a_mixed_map_has_no_names_in_it_but_a_key_below(world):
    _, at, labels = world
    mixed = labels[torch.randperm(120, generator=torch.Generator().manual_seed(0))]
    figure = drawn.side_by_side({"mixed": at, "again": at}, mixed, [f"class {c}" for c in range(10)])
    assert not any(ax.texts for ax in figure.axes)
    assert {t.get_text() for t in figure.legends[0].get_texts()} == {f"class {c}" for c in range(10)}
    with pytest.raises(ValueError, match="5 maps"):
        drawn.side_by_side(dict.fromkeys("abcde", at), labels)


def test_distances_of_classes_on_a_faithful_map_keep_their_order(world):
    z, at, labels = world
    unit = torch.nn.functional.normalize(z, dim=1).double()
    truth, seen = drawn.class_distances(z, at, labels)
    centres = [unit[labels == c].mean(dim=0) for c in range(10)]
    expected = [float((centres[a] - centres[b]).norm()) for a in range(10) for b in range(a + 1, 10)]
    np.testing.assert_allclose(truth, np.array(expected) / np.mean(expected), rtol=1e-6)
    assert seen.mean() == pytest.approx(1)
    again, _ = drawn.class_distances(z, at, labels)
    assert drawn.rank_correlation(truth, again) == pytest.approx(1)
    from scipy.stats import spearmanr

    assert drawn.rank_correlation(truth, seen) == pytest.approx(spearmanr(truth, seen).statistic)
    with pytest.raises(ValueError, match="2 classes"):
        drawn.class_distances(z, at, labels % 2)


def test_a_grid_needs_every_pair_and_shows_it(world):
    _, at, labels = world
    figure = drawn.grid({(p, s): at for p in (5, 30) for s in (0, 1)}, labels)
    assert len(figure.axes) == 4
    assert "perplexity 5, 30 and 2 seeds" in figures.alt(figure)
    with pytest.raises(ValueError, match="no map for perplexity 30 and seed 1"):
        drawn.grid({(5, 0): at, (5, 1): at, (30, 0): at}, labels)


def test_worlds_stand_above_their_maps(world):
    _, at, labels = world
    figure = drawn.worlds({"a": at, "b": at}, {"a": -at, "b": at}, {"a": labels, "b": labels})
    top = np.concatenate([m.get_offsets() for m in figure.axes[0].collections])
    below = np.concatenate([m.get_offsets() for m in figure.axes[2].collections])
    np.testing.assert_allclose(below, 1 - top, atol=1e-9)
    assert "2 data sets (a; b)" in figures.alt(figure)


# ---- panels ------------------------------------------------------------------------------------------------


def test_the_map_panel_shows_the_map_of_its_sliders_and_says_its_numbers(world):
    z, at, labels = world
    turned = at[:, ::-1].copy()
    mixed = at[torch.randperm(120, generator=torch.Generator().manual_seed(1)).numpy()]
    found = {(5, 0): at, (5, 1): turned, (30, 0): mixed, (30, 1): at}
    panel = controls.map_settings(found, z, labels)
    assert panel.values() == {"perplexity": 30, "seed": 0}
    assert f"share the class; trustworthiness {maps.trustworthiness(z, mixed):.2f}" in panel.readout.value
    first = panel.live.image.value
    panel.set(perplexity=5, seed=1)
    assert panel.live.image.value != first
    assert f"{maps.neighbour_share(turned, labels):.0%} share the class" in panel.readout.value
    with pytest.raises(ValueError, match=r"no map for .*30, 1"):
        controls.map_settings({k: v for k, v in found.items() if k != (30, 1)}, z, labels)


def test_the_view_panel_keeps_its_draws_while_a_slider_moves(scenes):
    panel = controls.view_strength(scenes.images[:3])
    assert "Crops of 20% to 100%" in panel.readout.value
    first = panel.live.image.value
    panel.set(colour=0.0)
    grey = panel.live.image.value
    assert grey != first
    panel.set(colour=1.0)
    assert panel.live.image.value == first
    panel.set(seed=1)
    assert panel.live.image.value not in (first, grey)
    panel.set(smallest=1.0)
    assert "100% is in both" in panel.readout.value


def test_umap_waits_for_its_button(world, monkeypatch):
    z, at, labels = world
    asked = []
    monkeypatch.setattr(maps, "umap", lambda z, **options: asked.append(options) or at)
    box = controls.umap_beside(at, z, labels)
    assert not asked
    start, result = box.children[0].children[0], box.children[-1]
    start.click()
    assert len(asked) == 1
    assert "UMAP: " in result.value or "<img" in result.value


# ---- watching ----------------------------------------------------------------------------------------------


class Screen:
    """Stands in for the notebook's page: keeps what was shown."""

    def __init__(self):
        self.bundles = []

    def __call__(self, bundle, **options):
        self.bundles.append(bundle)
        return self

    def update(self, bundle, **options):
        self.bundles.append(bundle)


@pytest.fixture
def screen(monkeypatch):
    from clutils.controls import watching

    monkeypatch.setattr(watching, "display", found := Screen())
    monkeypatch.delenv("CLUTILS_FAST", raising=False)
    return found


def tiny(steps=6):
    images = data.load("digits", limit=64)
    return training.Run(data=images, batch_size=16, steps=steps, seed=0)


def test_watching_changes_nothing_about_the_run(screen):
    alone = tiny().finish(progress=False)
    watched = tiny()
    measured = controls.watch(watched, lambda run: run.steps_done / 10, every=2)
    assert measured == {0: 0.0, 2: 0.2, 4: 0.4, 6: 0.6}
    assert [r["loss"] for r in watched.rows] == [r["loss"] for r in alone.rows]
    last = screen.bundles[-1]
    assert f"to {watched.rows[-1]['loss']:.2f} (chance is {math.log(31):.2f})" in last["text/plain"]
    assert 'alt="Three charts' in last["text/html"]


def test_the_stop_button_keeps_what_was_learned_and_watching_goes_on_from_there(screen, capsys):
    run, alone = tiny(), tiny().finish(progress=False)

    def stop(run):
        if run.steps_done == 4 and not stopped:
            stopped.append(True)
            raise KeyboardInterrupt
        return 0.5

    stopped = []
    measured = controls.watch(run, stop, every=2)
    assert run.steps_done == 4
    assert sorted(measured) == [0, 2, 4]
    assert "stopped after 4 of 6 steps" in capsys.readouterr().out
    assert sorted(controls.watch(run, stop, every=2)) == [4, 6]
    assert run.rows[-1]["loss"] == alone.rows[-1]["loss"]


def test_a_fast_session_shortens_the_run_and_says_so(screen, capsys, monkeypatch):
    monkeypatch.setenv("CLUTILS_FAST", "1")
    run = tiny(steps=50)
    controls.watch(run, lambda run: 0.5, every=50)
    assert run.steps_done == training.FAST_STEPS
    assert f"{training.FAST_STEPS} steps instead of 50" in capsys.readouterr().out
    with pytest.raises(ValueError, match="every is 0"):
        controls.watch(run, lambda run: 0.5, every=0)


def test_the_share_of_the_same_class_is_counted_over_all_pictures():
    draw = torch.Generator().manual_seed(0)
    z, labels = torch.randn(12, 4, generator=draw), torch.arange(12) % 3
    hits = 0
    for i in range(12):
        others = sorted(
            (j for j in range(12) if j != i),
            key=lambda j: -float(torch.cosine_similarity(z[i], z[j], dim=0)),
        )
        hits += sum(int(labels[j] == labels[i]) for j in others[:4])
    assert pictures.share_of_class(z, labels, 4) == pytest.approx(hits / 48)
