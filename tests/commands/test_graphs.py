"""`train` on graphs and on nodes: what is written, resumed, measured and refused."""

import json
import re

import pytest
import torch

from clutils import __main__ as command_line
from clutils import data, maps, measures, report, training, views
from clutils.views.vectors import Corruption


@pytest.mark.parametrize(
    ("method", "seen"), [("graphcl", "graphs:motifs"), ("grace", "nodes:karate")], ids=["graphs", "nodes"]
)
def test_training_writes_measures_resumes_and_embeds(method, seen, tmp_path, capsys):
    options = ["train", "--data", seen, "--method", method, "--steps", "4", "--batch-size", "64"]
    assert command_line.main([*options, "--out", str(tmp_path / "a")]) == 0
    said = capsys.readouterr().out
    assert re.search(r"kNN (0\.\d|1\.0)", said) and f"{method} with" in said and "step 4 of 4" in said
    config = json.loads((tmp_path / "a" / "config.json").read_text())
    assert config["data"] == seen and config["encoder"] in ("gin", "gcn-nodes")
    assert config["augmentation"]["name"] in ("GraphAugmentation", "NodeAugmentation")
    assert command_line.main(["check", str(tmp_path / "a" / "checkpoint.pt"), "--data", "digits"]) == 1
    assert f"is a run of this package on {seen}, and the page is for images" in capsys.readouterr().err
    run = training.resume(tmp_path / "a")
    assert run.steps_done == 4
    found = data.load(seen)
    z = run.embed(found)
    assert len(z) == len(found) and maps.pca(z).shape == (len(found), 2)
    assert (
        0 <= measures.linear_probe(z, found.labels, z, found.labels) <= 1 and measures.effective_rank(z) >= 1
    )
    assert command_line.main(["train", "--resume", "--steps", "6", "--out", str(tmp_path / "a")]) == 0
    straight = training.Run(method=method, data=seen, steps=6, batch_size=64)
    for _ in range(2):
        straight.step()
    assert straight.rows[0]["chance"] == run.rows[0]["chance"]


def test_an_augmentation_of_another_kind_is_refused_before_a_step():
    found = data.load("graphs:motifs", limit=20)
    with pytest.raises(
        ValueError, match=r"augmentation is Corruption, for vectors, but must be one for graphs"
    ):
        training.Run(method="graphcl", data=found, augmentation=Corruption(), batch_size=10)
    run = training.Run(method="graphcl", data=found, batch_size=10, steps=1)
    with pytest.raises(ValueError, match=r"augmentation is Augmentation, for images"):
        run.augmentation = views.Augmentation()
    run.augmentation = views.Identity()  # for any


def test_one_set_handed_to_the_report_is_refused_in_a_line():
    found = data.load("graphs:motifs", limit=20)
    with pytest.raises(ValueError, match=r"data is a GraphSet, but must be images: a name, or a pair"):
        report.check(torch.nn.Identity(), found)


def test_a_bare_tensor_of_graphs_is_a_run_too_and_another_padding_is_embedded():
    found = data.load("graphs:motifs", limit=40)
    run = training.Run(method="graphcl", data=found.graphs, steps=1, batch_size=20)
    run.step()
    V = found.graphs.shape[1]
    wider = torch.zeros(40, V + 2, 2 + V + 2)
    wider[:, :V, : V + 2] = found.graphs
    torch.testing.assert_close(run.embed(wider), run.embed(found), rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match=r"the run's have 1 attributes of a node"):
        run.embed(torch.zeros(2, 3, 7))
