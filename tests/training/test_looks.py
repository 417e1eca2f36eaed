"""Numbers by name along a run: those of `check`, in the history, and the run as if nobody had looked."""

import math

import pytest
import torch
from torch import nn

from clutils import data, encoders, losses, measures, methods, report, training
from clutils.training import saved, watcher
from tests.runs import DIGITS, advance, past, same, small

WHOLE = data.load("digits", limit=310)
GALLERY, JUDGED = WHOLE.subset(slice(0, 210)), WHOLE.subset(slice(210, 310))
NAMELESS = data.ImageSet(DIGITS.images, torch.full((100,), -1), (), None, "no labels")
CHEAP = tuple(name for name in measures.BY_NAME if name not in ("probe", "few"))


def test_the_numbers_are_those_that_check_measures_to_the_last_digit():
    encoder = advance(small(precision="float32"), 3).encoder
    seen = training.Watcher(JUDGED, GALLERY, numbers=measures.BY_NAME).look(encoder)
    further = tuple(measures.BY_NAME)
    checked = report.check(encoder, (GALLERY, JUDGED), tsne=False, numbers=further).examination.numbers
    assert set(seen.numbers) == {*measures.BY_NAME, "gradient_norm"}
    for name in measures.BY_NAME:
        value = seen.numbers[name]
        assert value == pytest.approx(checked[name], abs=1e-9), name


def test_looks_are_columns_of_the_history_and_come_back_with_the_run(tmp_path):
    run = small()
    run.looks[0] = {"rankme": 3.0}
    assert run.history["step"].tolist() == [0] and run.history["rankme"].tolist() == [3.0]
    advance(run, 3)
    run.looks[2] = {"rankme": 4.0, "knn": 0.5}
    assert run.history["step"].tolist() == [0, 1, 2, 3]
    assert run.history["rankme"].dropna().tolist() == [3.0, 4.0]
    assert run.history["knn"].isna().tolist() == [True, True, False, True]
    assert math.isnan(run.history["loss"][0]) and len(saved.taken(run.history)) == 3
    run.save(tmp_path / "run.pt")
    again = training.resume(tmp_path / "run.pt", data=DIGITS)
    assert past(again).equals(past(run))
    again.step()
    assert again.history["rankme"].dropna().tolist() == [3.0, 4.0] and len(again.history) == 5


def test_no_number_is_called_as_a_column_that_the_history_has():
    taken = set(small().history) | {"effective_temperature"}
    taken |= {name for entry in losses.catalogue().values() for name in entry.cls().hyperparameters()}
    taken |= {name for entry in methods.catalogue().values() for name in entry.cls.setting_names()}
    assert not taken & set(measures.BY_NAME)


def test_in_a_loop_of_one_s_own_gradient_and_head_are_looked_at_too():
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU())
    head = nn.Sequential(nn.Linear(16, 8), nn.BatchNorm1d(8))
    watching = training.Watcher(JUDGED, GALLERY)
    assert "gradient_norm" not in watching(encoder, 0, head).numbers  # there is none yet
    z = head(encoder(JUDGED.images.float() / 255))
    losses.NTXent(0.2)(z, z + 0.1).backward()
    look = watching(encoder, 1, head)
    by_hand = sum(p.grad.square().sum() for part in (encoder, head) for p in part.parameters()) ** 0.5
    assert look.numbers["gradient_norm"] == pytest.approx(by_hand.item(), rel=1e-5) and head.training
    with torch.no_grad():
        seen = head.eval()(encoder(JUDGED.images.float() / 255))
    assert look.numbers["head_uniformity"] == pytest.approx(measures.uniformity(seen), abs=1e-5)
    assert list(watching.table)[-2:] == ["head_uniformity", "gradient_norm"]
    with torch.no_grad():
        head[0].weight.zero_()
    assert watching(encoder, 2, head).numbers["head_uniformity"] > -0.01  # what the features do not show


@pytest.mark.parametrize("bias", [0.0, -9.0])
def test_the_first_row_is_the_better_of_fresh_weights_as_made_and_with_settled_statistics(bias):
    """With so low a bias a network as it is made is dead: the row lacked what settled statistics give."""
    torch.manual_seed(0)
    encoder = encoders.build("conv16", 1)
    encoder.normalisations[3].register_buffer("running_mean", torch.full((128,), -bias))
    row = training.Watcher(JUDGED, GALLERY, numbers=("probe",)).look(encoder)
    found = []
    for net in (encoder, encoders.settled(encoder, JUDGED.images)):
        z, gallery_z = (encoders.embed(net, some.images) for some in (JUDGED, GALLERY))
        found.append(measures.linear_probe(gallery_z, GALLERY.labels, z, JUDGED.labels))
    assert row.numbers["probe"] == max(found) and math.isfinite(row.knn)
    assert (found[1] > found[0] + 0.2) == (bias < 0)
    assert encoders.unseen(encoder) and not encoders.unseen(encoders.settled(encoder, JUDGED.images))


def test_in_a_loop_of_one_s_own_it_looks_at_its_steps_and_leaves_the_encoder_as_it_was():
    encoder = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.Dropout(), nn.Flatten())
    encoder[2].eval()
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    random = torch.get_rng_state()
    watching = training.Watcher(JUDGED, GALLERY, numbers=CHEAP, every=3)
    looks = [watching(encoder, step) for step in range(8)]
    assert [look.step for look in looks if look is not None] == [0, 3, 6] and looks[1] is None
    assert same(before, dict(encoder.state_dict())) and torch.equal(torch.get_rng_state(), random)
    assert encoder[1].training and not encoder[2].training
    with pytest.raises(ValueError, match="step is 2, but the last look was at 6: count on"):
        watching(encoder, 2)
    assert watching.table["step"].tolist() == [0, 3, 6] and set(CHEAP) < set(watching.table)
    with torch.no_grad():
        encoder.eval()
        z = encoder(JUDGED.images.float() / 255)
    assert watching.table["rankme"][0] == pytest.approx(measures.rankme(z), rel=1e-6)


def test_a_collapsed_encoder_has_no_numbers_and_stops_nothing():
    class Constant(nn.Module):
        def forward(self, images):
            return torch.zeros(len(images), 4)

    seen = training.Watcher(JUDGED, GALLERY, numbers=CHEAP).look(Constant())
    assert all(map(math.isnan, seen.numbers.values())) and math.isnan(seen.knn)
    assert seen.effective_rank == 0 and not seen.positions.any()


@pytest.mark.parametrize(
    ("pictures", "numbers", "said"),
    [
        (JUDGED, ("knn", "rankmee"), "the metric is 'rankmee', but must be one of rankme, effective_rank"),
        (NAMELESS, ("rankme", "knn"), "'knn' needs labels of two classes or more"),
        (NAMELESS, ("probe",), "'probe' needs labels"),
        (data.load("vectors:digits", limit=50), ("lidar",), "'lidar' needs views of images"),
        (JUDGED, ("knn_dino_200",), "'knn_dino_200' needs 200 labelled images, but there are 100"),
    ],
)
def test_a_number_that_can_t_be_is_refused_in_a_line(pictures, numbers, said):
    with pytest.raises(ValueError, match=said):
        watcher.Watcher(pictures, pictures, numbers=numbers)
