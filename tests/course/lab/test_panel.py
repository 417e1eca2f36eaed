"""The training lab: what is chosen is what runs, what is turned is in the history, and mistakes are said."""

import gc
import inspect
import math
import threading
import time
import weakref
from types import SimpleNamespace

import ipywidgets as W
import pytest

from clutils import data, losses, methods, training, views
from clutils.course import lab as lesson
from clutils.course import live
from clutils.course.lab import panel as module
from clutils.course.lab.background import Background
from clutils.course.live import beside_cells
from clutils.training import saved, watcher
from tests.runs import past, same, small, weights

pytestmark = pytest.mark.usefixtures("undrawn")
LONG = 120.0  # seconds that nothing here takes: a test that would hang fails instead


def made(**settings) -> lesson.Lab:
    return lesson.training_lab(**{"data": "digits", "steps": 6, "batch_size": 32, **settings})


def until(happened) -> None:
    end = time.monotonic() + LONG
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.01)


def reached(lab: lesson.Lab, step: int) -> None:
    until(lambda: lab.background.error is not None or lab.run.steps_done >= step)
    assert lab.background.error is None


def shown(lab: lesson.Lab) -> str:
    """The line in which the panel says what went wrong; empty where it says nothing."""
    return lab.error.value if lab.error.layout.display == "" else ""


def test_a_run_of_the_panel_is_the_run_that_python_makes_though_it_is_watched(drawn):
    lab = made(loss="MACL", seed=3).start()
    assert lab.wait(LONG) and lab.background.status == "step 6 of 6, done" and shown(lab) == ""
    loss = losses.MACL()
    straight = training.Run(data="digits", loss=loss, steps=6, batch_size=32, seed=3, learning_rate=5e-3)
    straight.finish(progress=False)
    assert same(weights(lab.run), weights(straight)) and past(lab.run).equals(past(straight))
    (kept,) = lab.runs
    assert kept.run is lab.run and kept.measured["step"].iloc[0] == 0 and kept.measured["step"].iloc[-1] == 6
    assert kept.map.positions.shape == (445, 2) and kept.map.step == 6
    assert 'role="status"' in lab.status.value and "done" in lab.status.value and "digits" in lab.status.value
    assert bytes(lab.screen.live.image.value).startswith(b"\x89PNG") and "6 steps" in lab.alt.value


def test_what_is_turned_takes_effect_at_the_next_step_and_is_in_the_history_with_it():
    lab = made(steps=100_000).start()
    reached(lab, 2)
    lab.set(temperature=0.5)
    first = lab.current.changes[0][0]
    reached(lab, first + 2)
    lab.sliders["learning_rate"].value = 0.001
    second = lab.current.changes[1][0]
    reached(lab, second + 1)
    lab.stop()
    history = lab.run.history.set_index("step")["temperature"]
    assert (history[: first - 1] == 0.2).all() and (history[first:] == 0.5).all()
    assert lab.current.changes == [(first, "temperature", 0.5), (second, "learning_rate", 0.001)]
    assert lab.sliders["temperature"].value == 0.5 and lab.run.learning_rate == 0.001
    assert lab.runs == [lab.current] and "stopped" in lab.status.value


def test_a_value_out_of_range_is_said_and_the_run_goes_on_with_the_old_one():
    lab = made(steps=100_000).start()
    reached(lab, 1)
    for name, value in (("temperature", -1.0), ("learning_rate", 0.0), ("volume", 11)):
        with pytest.raises(ValueError, match=name):
            lab.set(**{name: value})
        assert name in shown(lab)
    reached(lab, lab.run.steps_done + 3)
    assert lab.run.loss.temperature == 0.2 and lab.current.changes == [] and lab.background.running
    lab.set(temperature=0.3)
    assert shown(lab) == ""


def test_a_value_that_only_the_step_refuses_is_taken_back_and_the_run_goes_on():
    lab = made(method="moco", steps=100_000).start()
    reached(lab, 2)
    lab.set(momentum=1.5)
    until(lambda: "momentum" in shown(lab))
    reached(lab, lab.run.steps_done + 2)
    assert lab.run.method.momentum == 0.99 == lab.sliders["momentum"].value and lab.background.running
    assert "goes on with momentum = 0.99" in shown(lab) and lab.current.changes == []


def test_a_stopped_run_goes_on_with_the_sliders_as_they_stand_and_stays_one_run():
    lab = made(steps=100_000).start()
    reached(lab, 2)
    lab.stop()
    run, done = lab.run, lab.run.steps_done
    lab.sliders["temperature"].value = 0.7
    assert run.loss.temperature == 0.2  # what it ended with, until it goes on
    run.steps = done + 3
    lab.go_on()
    assert lab.wait(LONG) and lab.run is run and len(lab.runs) == 1
    assert run.history["temperature"].tolist() == [0.2] * done + [0.7] * 3
    with pytest.raises(ValueError, match="steps are done"):
        lab.go_on()


def test_another_start_is_another_run_and_the_first_keeps_what_it_was():
    lab = made(steps=3).start()
    lab.wait(LONG)
    first = lab.runs[0]
    before = weights(first.run)
    lab.menus["seed"].value, lab.menus["method"].value = 1, "simsiam"
    lab.start()
    lab.wait(LONG)
    assert [run.configuration["method"] for run in lab.runs] == ["simclr", "simsiam"]
    assert lab.runs[1].configuration["seed"] == 1 and same(before, weights(first.run))
    assert first.run.images is lab.runs[1].run.images  # one copy of the images
    assert lab.runs[0].name == first.name and lab.runs[0].history.equals(first.history)
    assert lab.runs[0].measured.equals(first.measured) and lab.runs[0].map.step == 3
    assert lab.runs[0].configuration == first.configuration


def test_runs_before_the_last_are_let_go_and_can_still_be_compared():
    lab, alive = made(steps=2), []
    for _ in range(3):
        lab.reset().start().wait(LONG)
        alive.append(weakref.ref(lab.run))
    gc.collect()
    assert [run() is None for run in alive] == [True, True, False]
    assert len(lesson.compare_runs(lab, "nowhere").runs) == 3


def test_a_cell_run_again_where_the_front_end_names_none_can_stop_what_trains():
    assert module._cell() is None
    lost = made(steps=100_000).start()
    reached(lost, 1)
    again = made()
    assert "stop ends it" in again.status.value and not again.stop_button.disabled
    again.stop_button.click()
    assert not lost.background.running and f"stopped at step {lost.run.steps_done}" in again.status.value
    assert lost.wait(LONG) and again.stop_button.disabled and lost.runs == [lost.current]
    assert again.start().wait(LONG)
    training_elsewhere = Background(small(steps=100_000)).start()
    with pytest.raises(ValueError, match=r"a run is training already, at step \d+ of 100,000: stop it first"):
        again.start()
    again.start_button.click()  # the same by hand, and nothing is raised
    assert "stop it first" in shown(again) and training_elsewhere.running
    again.stop_button.click()
    assert not training_elsewhere.running and Background.now is None


def test_a_cell_that_is_run_again_stops_its_own_run_alone_and_says_where_and_keeps_its_runs(
    monkeypatch,
):
    monkeypatch.setattr(module, "_cell", lambda: "one")
    first = made(steps=3)
    first.start().wait(LONG)
    first.menus["steps"].value = 100_000
    first.start()
    reached(first, 2)
    monkeypatch.setattr(module, "_cell", lambda: "two")
    assert made().runs == [] and first.background.running
    monkeypatch.setattr(module, "_cell", lambda: "one")
    again = made()
    assert not first.background.running and again.runs == first.runs
    assert len(again.runs) == 2 and not again.runs[1].run.done
    stopped = again.runs[1].run.steps_done
    assert f"the run that trained here was stopped at step {stopped}." in again.status.value
    with pytest.raises(ValueError, match="no method"):
        made(method="sim")
    third = made()  # a call that could not be does not lose them, and nothing was stopped for this one
    assert third.runs == first.runs and "stopped" not in third.status.value
    assert third.start().wait(LONG)


def test_a_cell_that_is_run_again_while_its_panel_loads_leaves_nothing_training(monkeypatch):
    monkeypatch.setattr(module, "_cell", lambda: "one")
    first, again = made(steps=100_000), []
    build = first.choices.run

    def loads(*arguments):
        again.append(made())  # the cell is run again in the middle of it
        return build(*arguments)

    monkeypatch.setattr(first.choices, "run", loads)
    with pytest.raises(ValueError, match="closed before its run began"):
        first.start()
    assert first.run is None and not again[0].background
    assert again[0].start().wait(LONG)


def test_the_second_press_of_a_double_click_is_dropped():
    lab = made(steps=100_000)
    lab.start_button.click()
    lab.start_button.click()
    assert shown(lab) == "" and lab.background.running and "Not started" not in lab.status.value
    reached(lab, 1)
    lab.stop_button.click()
    lab.continue_button.click()
    lab.continue_button.click()
    assert shown(lab) == "" and lab.background.running


def test_nothing_can_be_chosen_or_pressed_while_a_start_loads_and_all_can_where_it_fails(
    untrained, monkeypatch
):
    lab, seen = made(), []
    own = (*lab.menus.values(), lab.start_button)

    def fails(*arguments):
        seen.extend(widget.disabled for widget in (*own, lab.stop_button, lab.continue_button))
        raise ValueError("no such thing")

    monkeypatch.setattr(lab.choices, "run", fails)
    lab.start_button.click()
    assert seen and all(seen) and not any(widget.disabled for widget in own)
    assert "no such thing" in shown(lab) and "Not started" in lab.status.value


def test_steps_are_written_alike_while_a_run_trains_and_when_it_has_ended():
    lab = made(steps=100_000).start()
    reached(lab, 1)
    going = lab._following._progress()
    lab.stop()
    assert going.startswith("Step ") and "of 100,000" in going
    assert "of 100,000, stopped" in lab.status.value and "100000" not in lab.status.value + lab.alt.value
    assert lab.background.status == f"step {lab.run.steps_done:,} of 100,000, stopped"


def test_a_turn_is_looked_at_soon_after_though_the_share_of_the_time_is_used_up():
    lab = made(steps=100_000).start()
    reached(lab, 1)
    lab.current.watcher.seconds_total = lab.current.watcher.seconds_looking = math.inf
    lab.set(temperature=0.5)
    (turned, *_), *_ = lab.current.changes
    until(lambda: any(look.step >= turned for look in list(lab.current.watcher.looks)))
    reached(lab, lab.current.watcher.looks[-1].step + 1)  # so that the last of all is another
    lab.stop()
    after = [look.step for look in lab.current.watcher.looks if look.step >= turned]
    assert after[0] >= turned - 1 + watcher.SOON and len(after) == 2  # that one, and the last of all


def test_what_the_page_sends_is_answered_where_the_page_asked_for_it_whoever_changed_the_widget():
    class Comm:
        def _reply_subshell_for(self, data, asked_for):
            return None  # the main one, for a cell changed the widget

    new, old = SimpleNamespace(comm=Comm()), SimpleNamespace(comm=object())
    beside_cells([new], [old, SimpleNamespace(comm=None)])
    assert new.comm._reply_subshell_for({}, "a subshell") == "a subshell"
    assert not hasattr(old.comm, "_reply_subshell_for")


def test_an_exception_in_training_is_one_line_and_the_panel_is_free_again():
    lab = made(steps=100_000).start()
    reached(lab, 1)

    def breaks(*arguments):
        raise RuntimeError("the cat sat\non the cable")

    lab.background.call(lambda run: setattr(run.method, "forward", breaks)).result(LONG)
    with pytest.raises(RuntimeError, match="the cat sat"):
        lab.wait(LONG)
    assert "RuntimeError: the cat sat" in shown(lab) and "ended by RuntimeError" in lab.status.value
    assert not lab.start_button.disabled and lab.stop_button.disabled and not lab.menus["method"].disabled
    assert lab.start() and lab.background.running


def test_menus_and_buttons_are_what_can_be_done_now():
    lab = made(steps=100_000)
    assert lab.stop_button.disabled and lab.continue_button.disabled and lab.keep_button.disabled
    lab.start()
    assert lab.start_button.disabled and not lab.stop_button.disabled and not lab.keep_button.disabled
    assert all(widget.disabled for widget in lab.menus.values())
    assert "clutils-lab-picture" in lab.picture._dom_classes
    assert any("<style>.clutils-lab-picture" in str(getattr(w, "value", "")) for w in lab.picture.children)
    assert not any(widget.disabled for widget in lab.sliders.values())
    reached(lab, 1)
    lab.stop_button.click()
    assert not lab.start_button.disabled and not lab.continue_button.disabled and lab.stop_button.disabled
    assert not any(widget.disabled for widget in lab.menus.values())


# of a queue, no negatives, noise, prototypes, graphs, nodes; the sweep has all methods
KINDS = {"moco", "byol", "pinda", "swav", "graphcl", "dgi"}


def each_of(kinds):
    every = methods.catalogue()
    return pytest.mark.parametrize(
        "method", [pytest.param(name, marks=() if name in kinds else pytest.mark.sweep) for name in every]
    )


each_kind = each_of(KINDS)
each_kind_that_trains = each_of(KINDS - {"graphcl", "dgi"})  # of graphs and nodes: the test of kinds of data


@each_kind
def test_every_method_offers_the_losses_that_fit_it_and_sliders_for_what_is_live(method):
    lab, kind = made(method=method), methods.catalogue()[method].cls
    offered = [value for _, value in _options(lab.menus["loss"])]
    assert set(offered[1:]) == {name for name, entry in losses.catalogue().items() if kind.fits(entry.cls)}
    marked = [label.startswith("★") for label, _ in _options(lab.menus["loss"])[1:]]
    assert marked == sorted(marked, reverse=True), "the losses to begin with do not stand first"
    for name in offered:
        lab.menus["loss"].value = name
        loss = kind.default_loss() if name == offered[0] else losses.catalogue()[name].cls()
        usual = {key: getattr(loss, key) for key in loss.hyperparameters()}
        present = {key: value for key, value in usual.items() if value is not None}
        assert set(lab.sliders) == {*present, *kind.live, "learning_rate"}
        if "hardest" in present and "queue_size" not in kind.setting_names():
            present["hardest"] = 32  # a batch of 32 has 62 negatives
        for key, value in present.items():
            assert lab.sliders[key].value == value and isinstance(lab.sliders[key].value, type(value))
    assert shown(lab) == ""


def _options(menu: W.Dropdown) -> list[tuple[str, str]]:
    return [option if isinstance(option, tuple) else (option, option) for option in menu.options]


@each_kind_that_trains
def test_every_method_trains_from_the_panel(method):
    kinds = methods.catalogue()[method].cls.sample_kinds
    own = {"graphs": "graphs:motifs", "nodes": "nodes:karate"}
    lab = made(method=method, steps=2, **({} if "pictures" in kinds else {"data": own[kinds[0]]})).start()
    assert lab.wait(LONG) and lab.run.done and len(lab.current.measured) >= 2
    parameters = inspect.signature(type(lab.run.method)).parameters
    for name in lab.run.method.live:
        usual = parameters[name].default
        assert usual is None or getattr(lab.run.method, name) == usual


def test_another_method_keeps_a_loss_that_fits_it_and_drops_one_that_does_not():
    lab = made(loss="MACL")
    lab.menus["method"].value = "moco"
    assert lab.menus["loss"].value == "MACL"
    lab.menus["method"].value = "byol"
    assert lab.menus["loss"].value == module.ITS_OWN and set(lab.sliders) == {"momentum", "learning_rate"}
    with pytest.raises(ValueError, match="loss is 'MACL', but byol takes Regression"):
        made(method="byol", loss="MACL")
    with pytest.raises(ValueError, match="no method is called 'sim'"):
        made(method="sim")
    with pytest.raises(ValueError, match="no data called 'cats'"):
        made(data="cats")


def test_the_learning_rate_starts_where_the_method_s_own_run_would():
    lab = made()
    before = lab.sliders["learning_rate"].value
    lab.menus["method"].value = "simsiam"
    usual = training.Run(method="simsiam", data="digits", batch_size=64, steps=1).learning_rate
    assert lab.sliders["learning_rate"].value == pytest.approx(usual) == pytest.approx(before / 5)


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"data": module.FOLDER}, "path is empty"),
        ({"data": module.FOLDER, "path": "/nowhere"}, "is no folder"),
        ({"data": "cifar10"}, "'python -m clutils data cifar10' in a terminal fetches it"),
        ({"steps": 0}, "steps is 0"),
        ({"steps": 1_000_001}, "steps is 1,000,001, but must be at most 1,000,000"),
    ],
)
def test_what_can_not_train_is_said_with_what_to_do_and_nothing_breaks(monkeypatch, tmp_path, chosen, said):
    monkeypatch.setenv("CLUTILS_DATA", str(tmp_path))
    lab = made()
    for menu, value in chosen.items():
        lab.menus[menu].value = value
    lab.start_button.click()
    assert said in shown(lab).replace("&#x27;", "'") and lab.run is None
    assert "Error" not in shown(lab) and "Unavailable" not in shown(lab)
    lab.menus["data"].value, lab.menus["steps"].value = "digits", 2
    lab.start_button.click()
    assert shown(lab) == "" and lab.wait(LONG)


def test_pictures_of_one_s_own_without_labels_train_without_knn_and_it_is_said():
    pictures = data.load("digits", limit=120).images
    lab = made(data=pictures, steps=2).start()
    assert lab.wait(LONG) and "needs labels" in lab.status.value
    assert all(map(math.isnan, lab.runs[0].measured["knn"])) and lab.runs[0].map is not None


def test_the_fast_setting_shortens_a_run_and_says_so(monkeypatch):
    monkeypatch.setenv("CLUTILS_FAST", "1")
    lab = made(steps=500).start()
    assert (
        lab.run.steps == training.FAST_STEPS
        and f"{training.FAST_STEPS} steps instead of 500" in lab.note.value
    )
    assert lab.wait(LONG) and lab.run.steps_done == training.FAST_STEPS


def test_a_run_is_kept_while_it_trains_and_goes_on_from_there(tmp_path):
    lab = made(steps=100_000, folder=tmp_path / "kept").start()
    with pytest.raises(ValueError, match="a run's name is"):
        lab.keep("../up")
    reached(lab, 2)
    found = lab.keep("τ 0.2")
    steps = len(found.history)
    assert lab.background.running and steps >= 2
    assert 2 <= found.map.step == found.measured["step"].iloc[-1] <= steps, (
        "it was looked at when it was kept"
    )
    assert training.resume(found.path / "checkpoint.pt").steps_done == steps
    assert 10_000 < (found.path / "replay.html").stat().st_size < 400_000
    assert [run.name for run in saved.listed(tmp_path / "kept")] == ["τ 0.2"]
    with pytest.raises(ValueError, match="nothing is written over"):
        lab.keep("τ 0.2")
    assert "nothing is written over" in shown(lab)


def test_a_dial_that_moves_when_the_last_step_is_done_is_no_turn_of_that_run(monkeypatch):
    lab = made(steps=2).start()
    assert lab.wait(LONG)
    monkeypatch.setattr(type(lab.background), "running", True)  # its thread has yet to end
    lab.set(temperature=0.7)
    assert lab.current.changes == [] and lab.run.loss.temperature == 0.2


def test_reset_puts_menus_and_dials_back(monkeypatch):
    lab = made(loss="MACL")
    lab.menus["method"].value, lab.menus["data"].value, lab.menus["batch_size"].value = "moco", "scenes", 64
    lab.menus["loss"].value = "SSCL"
    lab.set(temperature=0.9)
    lab.reset()
    chosen = {name: lab.menus[name].value for name in ("method", "loss", "data", "batch_size")}
    assert chosen == {"method": "simclr", "loss": "MACL", "data": "digits", "batch_size": 32}
    assert lab.sliders["temperature"].value == 0.1 and "momentum" not in lab.sliders
    lab.menus["steps"].value = 100_000
    lab.start()
    with pytest.raises(ValueError, match="its menus are locked"):
        lab.reset()


def test_before_a_start_the_untrained_map_and_its_accuracy_stand_there(untrained, monkeypatch, tmp_path):
    lab = made()
    knn = list(lab.screen.charts.knn.get_ydata())
    assert len(knn) == 1 and f"kNN {knn[0]:.2f}" in lab.status.value and "Not started" in lab.status.value
    assert sum(len(marks.get_offsets()) for marks in lab.screen.charts.points.marks) == 445
    assert set(lab.screen.charts.baselines) == {"untrained", "raw pixels"}
    assert lab.run is None and lab.runs == [] and lab.keep_button.disabled
    monkeypatch.setenv("CLUTILS_DATA", str(tmp_path))
    assert made(data="cifar10").screen.charts.points is None  # which is not here, and is said at the start


WITH_KIND = ("method", "encoder", "augmentation")  # menus that follow the kind of data


@pytest.mark.parametrize(
    ("seen", "encoder", "view", "stays"),
    [
        ("vectors:wine", "mlp", "corruption", True),
        ("sentences:topics", "transformer", "deletion", True),
        ("graphs:motifs", "gin", "all four", False),
        ("nodes:karate", "gcn-nodes", "edges and attributes", False),
    ],
)
def test_menus_follow_the_kind_of_data_and_what_does_not_fit_it_gives_way(seen, encoder, view, stays):
    lab, kind = made(encoder="conv16", batch_size=64, steps=2), data.kind_called(seen).name
    lab.menus["data"].value = seen
    offered = {name: [v for _, v in lab.menus[name].options] for name in WITH_KIND}
    assert set(offered["method"]) == set(methods.catalogue(kind))
    assert (lab.menus["method"].value == "simclr") == stays  # it stays where it can
    for menu in ("method", "data"):
        assert any(label.startswith("★") for label, _ in lab.menus[menu].options)
    assert lab.menus["encoder"].value == views.AUTO and "conv16" not in offered["encoder"]
    assert encoder in offered["encoder"] and offered["augmentation"] == [views.AUTO, *views.names(kind)]
    lab.menus["augmentation"].value = view
    assert lab.start().wait(LONG) and lab.run.steps_done == 2 and shown(lab) == ""
    assert lab.run.configuration["encoder"] in offered["encoder"] and "equal" not in lab.status.value
    assert lab.run.settings.batch_size == min(64, len(lab.run.data) if kind != "nodes" else 34)
    lab.menus["data"].value = "digits"
    assert lab.menus["augmentation"].value == lab.menus["encoder"].value == views.AUTO
    assert {name for _, name in lab.menus["method"].options} == set(methods.catalogue("pictures"))
    opened = lesson.training_lab(data=seen, steps=2)
    first = opened.menus["method"].value
    assert kind in methods.catalogue()[first].cls.sample_kinds and shown(opened) == ""
    opened.menus["data"].value = "digits"
    opened.reset()
    assert (opened.menus["data"].value, opened.menus["method"].value) == (seen, first)


def test_equal_views_are_said_and_an_encoder_of_another_kind_is_refused():
    lab = lesson.training_lab(data="vectors:wine", steps=2)
    lab.menus["augmentation"].value = "none"
    assert lab.start().wait(LONG) and "the two views of each sample are equal" in lab.status.value
    with pytest.raises(ValueError, match=r"encoder is 'conv16', but vectors can have .*mlp"):
        made(data="vectors:wine", encoder="conv16")


@pytest.mark.parametrize(("method", "most"), [("simclr", 32), ("moco", 1024)])
def test_a_loss_that_mixes_the_hardest_starts_with_as_many_as_there_are(method, most):
    lab = made(method=method, loss="MoCHi", steps=1)
    assert lab.sliders["hardest"].value == most and lab.start().wait(LONG)
    lab.menus["batch_size"].value = 256
    lab.set(hardest=most)
    lab.menus["batch_size"].value = 32
    assert lab.sliders["hardest"].value == most and lab.start().wait(LONG)


def test_a_smaller_batch_lowers_the_number_of_the_hardest():
    lab = made(loss="MoCHi", steps=1, batch_size=64)
    assert lab.sliders["hardest"].value == 64
    lab.menus["batch_size"].value = 32
    assert lab.sliders["hardest"].value == 32 and lab.start().wait(LONG)


def test_a_field_shows_the_number_that_is_used():
    lab, sent = made(steps=1), []
    lab.menus["steps"].observe(lambda change: sent.append(change["new"]), "value")
    assert lab.start().wait(LONG)
    assert sent[-1] == 1 and len(sent) == 2, "the page hears of a value only where it changes"


def test_the_dial_of_a_temperature_that_moves_by_itself_is_called_by_its_start():
    assert made(loss="MACL").sliders["temperature"].description.startswith("τ₀ ")
    assert made().sliders["temperature"].description.startswith("τ ")


def test_the_name_moves_on_when_it_is_taken(tmp_path):
    (tmp_path / "run-2").mkdir()
    (tmp_path / "run-2" / "notes.txt").write_text("mine")
    lab = made(steps=1, folder=tmp_path).start()
    lab.wait(LONG)
    assert lab.name.value == "run-1"
    lab.keep_button.click()
    assert (tmp_path / "run-1").is_dir() and lab.name.value == "run-3"
    lab.keep("τ")
    assert lab.name.value == "run-3"
    lab.name.value = "τ"
    lab.keep_button.click()
    assert "nothing is written over" in shown(lab) and lab.name.value == "τ"
    lab.name.value = "slow"
    lab.keep_button.click()
    assert lab.name.value == "slow-2" and shown(lab) == ""
    assert made(folder=tmp_path).name.value == "run-3"


def test_drawing_never_happens_in_the_training_thread(drawn, monkeypatch):
    seen = set()
    real = live.LiveFigure.draw
    monkeypatch.setattr(
        live.LiveFigure, "draw", lambda self: seen.add(threading.current_thread().name) or real(self)
    )
    lab = made(steps=8).start()
    lab.wait(LONG)
    assert "clutils lab" in seen and "clutils training" not in seen
