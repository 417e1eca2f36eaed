"""A recorded run: small, as it was measured, written where runs are kept."""

import re

import numpy as np
import pandas as pd
import pytest
import torch

from clutils import explorers
from clutils.data import VectorSet
from clutils.explorers import replay
from clutils.training.watcher import Look


@pytest.fixture(scope="module")
def run() -> tuple[pd.DataFrame, list[Look], VectorSet]:
    """A thousand steps, looked at 300 times, of 500 points."""
    dice = np.random.default_rng(0)
    steps = np.arange(1, 1001)
    history = pd.DataFrame(
        {"step": steps, "loss": 5 / np.sqrt(steps), "chance": np.log(255.0), "temperature": 0.2}
    )
    history["alignment"], history["uniformity"] = 1 / steps, -np.log(steps)
    end = dice.normal(size=(500, 2))
    looks = [
        Look(step, step / 2000, 1 + step / 100, (end * step / 1000).astype(np.float32), 0.1)
        for step in range(0, 1000, 3)
    ]
    labels = torch.arange(500) % 10
    return history, looks, VectorSet(torch.zeros(500, 3), labels, tuple("abcdefghij"), "made up")


def test_a_long_run_stays_below_400_kB_with_its_first_and_last_map(run):
    shown = explorers.of_run(*run, "a long run", "made up")
    assert 200_000 < len(explorers.page("run", run=shown).encode()) <= 400_000
    assert shown["looks"][0] == 0 and shown["looks"][-1] == 999 and shown["steps"][-1] == 1000
    assert len(shown["steps"]) <= 400 and shown["curves"]["loss"][0] == 5.0


def test_the_page_has_positions_to_a_thousandth_and_the_measurements_of_each_step(run, opening, tmp_path):
    history, looks, pictures = run
    shown = explorers.of_run(history, looks, pictures, "a long run", "made up")
    explorers.write(tmp_path / "replay.html", "run", run=shown)
    with opening("run", path=tmp_path / "replay.html") as page:
        placed = np.array(page.ask("(app) => [...app.placed]")).reshape(-1, 500, 2)
        page.ask("(app) => app.set('frame', 500)")
        page.until("document.querySelector('.says').textContent.includes('step 500 of')")
        said = page.ask("(app) => app.said")
    where = np.stack([look.positions for look in looks if look.step in shown["looks"]])
    scaled = (where - where.min()) / (where.max() - where.min())
    assert np.abs(placed - scaled).max() < 0.51 / 1023 + 1e-6
    at = max(step for step in shown["steps"] if step <= 500)
    loss = f"{5 / np.sqrt(at):.3g}"
    assert f"loss {loss}" in said and "chance 5.54" in said


def test_a_run_that_nobody_watched_has_no_replay(run):
    with pytest.raises(ValueError, match="never looked at"):
        explorers.of_run(run[0], [], run[2], "unseen")


def test_what_was_not_measured_is_none_and_no_zero(run, opening, tmp_path):
    history, looks, _ = run
    blind = [
        Look(look.step, float("nan"), look.effective_rank, look.positions[:50], 0.1) for look in looks[:5]
    ]
    nobody = VectorSet(torch.zeros(50, 3), torch.full((50,), -1), (), "made up")
    shown = explorers.of_run(history[["step", "loss"]], blind, nobody, "unlabelled")
    assert shown["knn"] == [None] * 5 and "temperature" not in shown["curves"]
    explorers.write(tmp_path / "replay.html", "run", run=shown)
    with opening("run", path=tmp_path / "replay.html") as page:
        titles = page.page.locator("svg .title").all_text_contents()
        assert "kNN accuracy: not measured" in titles and "kNN" not in page.page.text_content(".says")


def test_the_run_that_the_package_carries_learned_and_says_where_it_is_from():
    carried = replay.recorded()
    assert len(explorers.page("run").encode()) <= 400_000
    assert carried["looks"][0] == 0 and len(carried["looks"]) > 20
    assert (
        carried["knn"][-1] > carried["knn"][0] + 0.2
        and carried["curves"]["loss"][-1] < carried["curves"]["chance"][-1]
    )
    assert re.search(r"torch \d.*\d{4}-\d\d-\d\d", carried["source"])
