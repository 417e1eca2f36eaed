"""CLIP and SigLIP on scenes with captions: what captions say, the open losses, the record and its page."""

import math
import re

import pandas as pd
import pytest
import torch
import torch.nn.functional as F

from clutils import data, losses
from clutils.course import evidence, records
from clutils.course import images_and_sentences as lesson
from clutils.course.images_and_sentences import captions, experiments
from clutils.data.sentences import words
from tests.course.answers import judged

LOSSES = (records.ROOT / "docs" / "losses.md").read_text("utf-8").split("## Images with captions")[1]


@pytest.fixture(scope="module")
def scenes() -> data.ImageSet:
    return data.load("scenes", limit=120, size=24)


@pytest.fixture(scope="module")
def said(scenes) -> pd.DataFrame:
    return captions.facts(scenes)


def pictures_of(mask: torch.Tensor, inside: tuple[float, ...], outside: tuple[float, ...]) -> data.ImageSet:
    colours = (torch.tensor(colour).view(3, 1, 1) for colour in (inside, outside))
    image = torch.where(mask, *colours).mul(255).round().to(torch.uint8)
    return data.ImageSet(image[None], torch.tensor([0]), ("dots",), masks=mask[None], source="drawn")


@pytest.mark.parametrize(
    ("colour", "name"),
    [
        ((0.9, 0.1, 0.1), "red"),
        ((0.9, 0.1, 0.2), "red"),
        ((0.9, 0.9, 0.1), "yellow"),
        ((0.1, 0.9, 0.1), "green"),
        ((0.1, 0.9, 0.9), "cyan"),
        ((0.1, 0.1, 0.9), "blue"),
        ((0.9, 0.1, 0.9), "purple"),
        ((0.5, 0.45, 0.5), "grey"),
    ],
)
def test_a_drawn_object_has_its_shape_place_and_colours(colour, name):
    at = torch.arange(24) + 0.5
    y, x = at[:, None] - 8, at[None] - 16
    shapes = {
        "disc": x.hypot(y) < 7,
        "square": torch.maximum(x.abs(), y.abs()) < 6,
        "diamond": x.abs() + y.abs() < 7,
    }
    for shape, mask in shapes.items():
        (row,) = captions.facts(pictures_of(mask, colour, (0.1, 0.1, 0.9))).to_dict("records")
        want = {"texture": "dots", "shape": shape, "colour": name, "ground": "blue", "place": "upper right"}
        assert row == want
    lower = captions.facts(pictures_of(shapes["disc"].flip(0, 1), colour, colour))
    assert lower["place"].tolist() == ["lower left"] and lower["ground"].tolist() == [name]


def test_images_without_masks_have_no_facts():
    with pytest.raises(ValueError, match=r"needs scenes with masks and labels, but got .*digits"):
        captions.facts(data.load("digits", limit=10))


def test_a_caption_says_what_is_asked_and_nothing_else(said):
    whole = captions.captions(said)
    for text, row in zip(whole, said.to_dict("records"), strict=True):
        assert all(value in text for value in row.values())
    assert len(set(text.split()[0] for text in whole)) > 2  # several templates
    without = captions.captions(said, keep=experiments.WITHOUT_TEXTURE)
    textures = {word for name in said["texture"] for word in words(name)}
    assert not any(set(words(text)) & textures for text in without)
    assert set(captions.captions(said, left_out=1.0)) == {"a thing", "thing"}
    some = captions.captions(said, left_out=0.2)
    assert 0.1 < sum("thing" in text for text in some) / len(some) < 0.3  # the shape
    assert (
        captions.captions(said.head(7), left_out=0.2, seed=3)
        == captions.captions(said, left_out=0.2, seed=3)[:7]
    )
    with pytest.raises(ValueError, match="keep names 'size', but the facts are texture, shape"):
        captions.captions(said, keep=("size",))


def test_no_two_words_of_captions_share_a_number_and_none_is_cut(said):
    known = {word for text in captions.captions(said) for word in words(text)}
    known |= {word for name in (*captions.COLOURS, *captions.PLACES) for word in words(name)}
    assert len({int(experiments.tokens([word])[0, 0]) for word in known}) == len(known)
    longest = captions.captions(said.assign(texture="horizontal stripes"))
    assert int((experiments.tokens(longest, length=40) > 0).sum(dim=1).max()) <= experiments.LENGTH


def test_the_open_losses_are_those_of_the_package_and_the_start_bias_is_the_best_without_knowledge():
    u, v = F.normalize(torch.randn(2, 9, 64), dim=2)
    clip, siglip = experiments.start("CLIP", 9, 0), experiments.start("SigLIP", 9, 0)
    torch.testing.assert_close(experiments.symmetric(u, v, clip.t), losses.CLIP(0.07)(u, v))
    own = losses.SigLIP(0.1, bias=siglip.bias.item())(u, v)
    torch.testing.assert_close(experiments.siglip_loss(u, v, siglip), own)
    b = torch.tensor(-math.log(8.0), dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(F.softplus(-b) + 8 * F.softplus(b), b)
    assert abs(float(slope)) < 1e-12 and siglip.bias.item() == pytest.approx(b.item())
    assert round(math.exp(10) + 1, -3) == 22_000  # the batch that the paper's -10 suits


def test_training_moves_both_towers_keeps_a_fixed_temperature_and_caps_a_learned_one(scenes, said):
    tokens = experiments.tokens(captions.captions(said), length=experiments.LENGTH)
    for loss, fixed in (("CLIP", None), ("SigLIP", None), ("CLIP", 0.01)):
        model = experiments.start(loss, 16, 0, fixed)
        model.t.data.clamp_(min=math.log(100) + 0.5 if fixed is None else -math.inf)
        before = {name: value.clone() for name, value in model.state_dict().items()}
        values = experiments.train(model, loss, scenes.images, tokens, 2, 16, 0, 3e-3)
        assert len(values) == 2 and all(map(math.isfinite, values)) and not model.training
        moved = {name for name, value in model.state_dict().items() if not value.equal(before[name])}
        assert any(n.startswith("image.0") for n in moved) and any(n.startswith("text.0") for n in moved)
        assert ("t" in moved) == (fixed is None) and float(model.t.detach().exp()) <= 100.001
        assert ("bias" in moved) == (loss == "SigLIP")


def test_the_page_says_what_is_on_record():
    table = records.read(experiments.RECORD).sort_values("seed")
    recall = "image to text, recall@1"
    fixed = table.query("part == 'temperatures'").groupby("temperature")
    assert (fixed["seed"].nunique() == 3).all()
    for tau, row in fixed[["gap", recall, "zero-shot"]].mean().iterrows():
        shares = " | ".join(f"{100 * row[name]:.1f} %" for name in (recall, "zero-shot"))
        assert f"| {float(tau):g} | {row['gap']:.2f} | {shares} |" in LOSSES
    parts = table.query("part == 'left out'")
    fresh, kept = parts.query("steps == 0"), parts.query("steps > 0 and said == 'all'")
    dropped = parts.query("said == 'no texture'")
    assert f"fresh networks it is {fresh['gap'].mean():.2f}" in LOSSES
    assert fresh["gap"].mean() > fixed["gap"].mean().max()
    texture, shape = (
        [evidence.paired(a[f"probe of {of}"].tolist(), b[f"probe of {of}"].tolist()) for a, b in pairs]
        for of, pairs in (
            ("texture", ((kept, dropped), (dropped, fresh))),
            ("shape", ((dropped, fresh), (kept, fresh))),
        )
    )
    lost, rest = texture
    assert (
        f"{100 * lost.mean:.1f} points lower (95 % interval {100 * lost.low:.1f} to {100 * lost.high:.1f})"
        in LOSSES
    )
    assert f"({100 * rest.mean:.1f} points, not decided)" in LOSSES and not rest.decided
    assert all(gain.verdict == "above" for gain in shape)
    assert " and ".join(f"{100 * gain.mean:.1f}" for gain in shape) + " points above" in LOSSES
    small = table.query("part == 'batches' and batch == 16")
    gap = evidence.paired(*(small.query("loss == @name")[recall].tolist() for name in ("SigLIP", "CLIP")))
    assert not gap.decided and re.search(
        f"{100 * gap.mean:.1f} points .*{100 * gap.low:.1f} to {100 * gap.high:.1f}", LOSSES
    )


def test_the_matrix_shows_each_look_and_goes_back_to_it():
    panel, look = lesson.matrix((0, 10))
    assert "no look yet" in panel.readout.value
    first, last = torch.full((3, 3), 0.25), torch.eye(3)
    look(first)
    assert "after 0 steps: mean cosine with the own caption 0.25, with the others 0.25" in panel.readout.value
    look(last)
    assert (
        "after 10 steps: mean cosine with the own caption 1.00, with the others 0.00" in panel.readout.value
    )
    (shown,) = panel.live.figure.axes[0].images
    assert torch.from_numpy(shown.get_array()).equal(last)
    panel.set(look=0)
    assert "after 0 steps" in panel.readout.value and torch.from_numpy(shown.get_array()).equal(first)


def test_the_gap_panel_says_the_record_and_shows_the_map_of_its_temperature():
    clouds = {"fresh": torch.zeros(2, 4, 2).numpy(), "0.1": torch.full((2, 4, 2), 0.5).numpy()}
    panel = lesson.gap_against_temperature(clouds, {0.0: [1.0, 1.2], 0.1: [0.2, 0.4]})
    assert "fresh networks: gap 1.10 on average, 1.00 to 1.20 over 2 seeds" in panel.readout.value
    panel.set(tau="0.1")
    assert "trained at τ = 0.1: gap 0.30 on average, 0.20 to 0.40 over 2 seeds" in panel.readout.value
    images = panel.live.figure.axes[0].lines[0]
    assert images.get_xdata().tolist() == [0.5] * 4


ANSWERS = {
    "symmetric": [
        lambda u, v, t: sum(
            -torch.softmax(s * t.exp(), 1).diag().log().mean() / 2 for s in (u @ v.T, v @ u.T)
        ),
    ],
    "start_bias": [lambda batch: math.log(1 / batch) - math.log(1 - 1 / batch)],
    "recall_at": [
        lambda s, k: ((s > s.diag()[:, None]).sum(dim=1) < k).double().mean(),
        lambda s, k: sum(i in row.topk(k).indices.tolist() for i, row in enumerate(s)) / len(s),
    ],
}
MISTAKES = {
    "symmetric": [
        lambda u, v, t: losses.NTXent(math.exp(-t))(u, v),  # both views, and pairs of one kind
        lambda u, v, t: losses.CLIP(math.exp(-t))(u, v),  # t without a gradient
        lambda u, v, t: F.cross_entropy((u @ v.T + (u @ v.T).T) / 2 * t.exp(), torch.arange(len(u))),
    ],
    "start_bias": [
        lambda batch: -math.log(batch + 1),
        lambda batch: -(batch - 1),
        lambda batch: -math.log(batch - 1) / 2,
    ],
    "recall_at": [
        lambda s, k: ((s > s.diag()[:, None]).sum(dim=1) <= k).double().mean(),
        lambda s, k: ((s > s.diag()).sum(dim=0) < k).double().mean(),
        lambda s, k: (s.topk(k, dim=1).indices == 0).any(dim=1).double().mean(),
    ],
}

test_an_exercise_takes_other_ways_and_no_mistake = judged(lesson, ANSWERS, MISTAKES)
