"""What all views of vectors, sentences, graphs and nodes share: names, seeds, and what is refused."""

import pytest
import torch

from clutils import data, training, views

SAMPLES = {
    "vectors": data.load("vectors:digits", limit=100).inputs,
    "sentences": data.load("sentences:topics", limit=100).inputs,
    "graphs": data.load("graphs:motifs", limit=24).inputs,
    "nodes": data.load("nodes:karate").inputs,
}
NAMED = [(kind, name) for kind in SAMPLES for name in views.names(kind)]
SETTINGS = [
    (kind, name, setting)
    for kind, name in NAMED
    for setting, value in vars(views.named(name, SAMPLES[kind])).items()
    if not isinstance(value, bool | tuple)  # nor groups of columns
]


@pytest.mark.parametrize(("kind", "name"), NAMED)
def test_a_file_can_name_them_and_the_seed_decides(kind, name):
    samples = SAMPLES[kind]
    view, settings = views.named(name, samples), views.settings_of(views.named(name, samples))
    assert views.from_settings(settings) == view
    if settings:
        assert views.name_of(settings, samples.shape) == name and view.kind == kind
    first, again, other = (view(samples, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert first.shape == samples.shape and torch.equal(first, again)
    assert torch.equal(first, other) == (name in ("none", "dropout"))


def test_names_are_those_of_one_kind_or_of_all_and_the_first_suits():
    assert views.names("vectors") == ("corruption", "noise", "masking", "none")
    assert views.names("sentences") == ("dropout", "deletion", "reordering")
    assert "simclr" in views.names("pictures") and "noise" not in views.names("pictures")
    assert set(views.names()) == {name for kind in data.KINDS for name in views.names(kind.name)}
    for kind, samples in SAMPLES.items():
        assert views.suiting(samples) == views.named(views.names(kind)[0], samples)


@pytest.mark.parametrize("value", [-0.1, float("nan"), float("inf"), 1.5])
@pytest.mark.parametrize(("kind", "name", "setting"), SETTINGS)
def test_a_strength_that_can_not_be_is_quoted(kind, name, setting, value):
    view = views.named(name, SAMPLES[kind])
    setattr(view, setting, value)
    if value == 1.5 and setting in ("strength", "reach"):
        view(SAMPLES[kind])
    else:
        with pytest.raises(
            ValueError, match=rf"^{type(view).__name__}: {setting} is {value}, but must be a .*$"
        ):
            view(SAMPLES[kind])


@pytest.mark.parametrize(("kind", "name"), [each for each in NAMED if each[1] != "none"])
def test_samples_of_another_kind_are_refused_in_one_line(kind, name):
    view = views.named(name, SAMPLES[kind])
    for other in (SAMPLES["sentences" if kind == "vectors" else "vectors"], torch.zeros(2, 3, 4, 4), [[1.0]]):
        with pytest.raises(
            ValueError, match=rf"^{type(view).__name__}: what came in is .* must be {kind}, .*$"
        ):
            view(other)


@pytest.mark.parametrize(
    ("name", "augmentation", "message"),
    [
        ("graphs:motifs", "crop", "augmentation is 'crop', but must be one for graphs: one of four"),
        ("sentences:topics", "simclr", "augmentation is 'simclr', but must be one for sentences: dropout"),
        ("vectors:digits", "one of four", "must be one for vectors: corruption"),
        ("nodes:karate", "crop", "must be one for nodes: edges"),
        ("digits", "one of four", "'one of four', but must be one of simclr, digits"),
    ],
)
def test_augmentations_of_another_kind_are_refused_in_one_line_both_ways(name, augmentation, message):
    with pytest.raises(ValueError, match=message):
        views.named(augmentation, data.load(name, limit=32).inputs)
    with pytest.raises(ValueError, match=message):
        training.Run(data=data.load(name, limit=32), augmentation=augmentation, batch_size=32)
