"""The loop: repeatable, interruptible, honest about what it did."""

import math
import shutil
import threading
from itertools import pairwise

import pytest
import torch
from torch import nn

from clutils import data, encoders, losses, measures, training, views
from clutils.training import streams
from tests.runs import DIGITS, NoChance, advance, past, same, small, weights

# ---- the same seed, the same run -----------------------------------------------------------------------


def test_what_another_thread_draws_changes_no_first_weights_and_gets_its_own_numbers(monkeypatch):
    build, drawn = encoders.build, []

    def beside(*given, **named):
        thread = threading.Thread(target=lambda: drawn.append(torch.rand(3)))
        thread.start()
        thread.join()
        return build(*given, **named)

    alone = weights(small(seed=5))
    monkeypatch.setattr(encoders, "build", beside)
    torch.manual_seed(1)
    assert same(weights(small(seed=5)), alone)
    torch.manual_seed(1)
    assert torch.equal(drawn[0], torch.rand(3))


def test_weights_order_and_views_each_follow_from_the_seed():
    assert same(weights(small(seed=5)), weights(small(seed=5, batch_size=16)))
    assert not same(weights(small(seed=5)), weights(small(seed=6)))
    seeds = {streams.seed(s, stream, n) for s in range(5) for stream in streams.STREAMS for n in range(100)}
    assert len(seeds) == 5 * len(streams.STREAMS) * 100


def test_every_epoch_takes_every_picture_once_in_a_new_order():
    counted = torch.arange(96, dtype=torch.uint8)[:, None, None, None].expand(96, 1, 8, 8).contiguous()
    seen = []

    def record(images, generator):
        seen.append(images[: len(images) // 2, 0, 0, 0].clone())
        assert torch.equal(*images.chunk(2))  # both views are made from the same images
        return images + torch.rand(images.shape, generator=generator)

    advance(small(data=counted, augmentation=record), 6)
    first, second = torch.cat(seen[:3]).tolist(), torch.cat(seen[3:]).tolist()
    assert sorted(first) == sorted(second) == list(range(96))
    assert first != second and first != list(range(96))


def test_every_step_draws_its_own_views():
    drawn = []

    def record(images, generator):
        drawn.append(torch.rand(4, generator=generator).tolist())
        return images.float() / 255 + torch.rand(images.shape, generator=generator)

    advance(small(augmentation=record), 3)
    assert len({tuple(numbers) for numbers in drawn}) == 3


# ---- what a step does ----------------------------------------------------------------------------------


def test_a_loss_of_ones_own_trains_and_has_no_chance_level():
    run = training.train(data=DIGITS, batch_size=32, steps=2, loss=NoChance())
    assert math.isnan(run.rows[0]["chance"]) and run.rows[0]["loss"] > 0


def test_the_history_holds_what_the_measures_say_of_the_batch_it_saw():
    run, seen = small(), []
    forward = run.method.forward
    run.method.forward = lambda *args: seen.append(forward(*args)) or seen[-1]
    advance(run, 3)
    assert list(run.history.step) == [1, 2, 3]
    for row, (loss, z1, z2) in zip(run.rows, seen, strict=True):
        assert row["loss"] == loss.item()
        assert row["alignment"] == pytest.approx(measures.alignment(z1, z2), abs=1e-5)
        uniformity = (measures.uniformity(z1) + measures.uniformity(z2)) / 2
        assert row["uniformity"] == pytest.approx(uniformity, abs=1e-5)
    assert run.history.seconds.is_monotonic_increasing and run.history.seconds.iloc[0] > 0


def test_a_history_of_no_steps_is_an_empty_table_with_columns():
    assert len(small().history) == 0 and "loss" in small().history


def test_settings_of_the_loss_may_turn_while_it_runs_and_the_history_says_when():
    still, turned = advance(small(), 2), advance(small(), 2)
    turned.loss.temperature = 0.5
    advance(still, 1), advance(turned, 1)
    assert list(turned.history.temperature) == [0.2, 0.2, 0.5]
    assert turned.rows[2]["loss"] != still.rows[2]["loss"]
    assert turned.rows[2]["alignment"] == still.rows[2]["alignment"]  # the same weights and views until then
    turned.loss = losses.MACL(temperature=0.1)
    assert turned.step()["alpha"] == 0.5 and math.isnan(turned.history.alpha[0])


def test_the_learning_rate_rises_over_a_twentieth_and_falls_as_half_a_cosine():
    run = advance(small(steps=40, learning_rate=1e-3), 40)
    rates = list(run.history.learning_rate)
    assert rates[:2] == pytest.approx([0.5e-3, 1e-3])  # 5 % of 40 steps
    assert rates[2] == pytest.approx(1e-3)
    assert rates[21] == pytest.approx(0.5e-3)
    assert rates[39] == pytest.approx(1e-3 * (1 + math.cos(math.pi * 37 / 38)) / 2)
    assert all(a > b for a, b in pairwise(rates[2:]))


def test_sgd_adds_the_decay_to_the_gradient_and_gathers_momentum_which_is_not_nesterovs():
    run = small(optimiser="sgd", learning_rate=1e-2, weight_decay=0.1, steps=20)  # a rise of one step
    speed = {name: torch.zeros_like(p) for name, p in run.method.named_parameters()}
    for _ in range(3):
        before = weights(run)
        rate = run.step()["learning_rate"]
        for name, parameter in run.method.named_parameters():
            speed[name] = 0.9 * speed[name] + parameter.grad + 0.1 * before[name]
            expected = before[name] - rate * speed[name]
            torch.testing.assert_close(parameter.detach(), expected, rtol=1e-5, atol=1e-6)


def test_epochs_count_whole_batches_only_and_replace_steps():
    assert small(epochs=4, steps=999).steps == 4 * (100 // 32)


def test_after_the_last_step_there_is_none_until_more_are_asked_for():
    run = advance(small(steps=2), 2)
    assert run.done
    with pytest.raises(ValueError, match=r"all 2 steps are done; set run\.steps higher"):
        run.step()
    run.steps = 3
    assert run.step()["step"] == 3


def test_bfloat16_is_the_encoders_alone():
    run = small(precision="bfloat16")
    types = {}
    run.encoder.convolutions[1].register_forward_hook(lambda m, i, out: types.update(encoder=out.dtype))
    run.method.head.register_forward_hook(lambda m, i, out: types.update(head=out.dtype))
    run.step()
    assert types == {"encoder": torch.bfloat16, "head": torch.float32}
    assert all(p.dtype == torch.float32 for p in run.method.parameters())
    assert run.embed(DIGITS).dtype == torch.float32


def vectors(**settings) -> training.Run:
    return small(data=data.load("vectors:digits", limit=100), precision="float32", **settings)


def test_without_a_compiler_compile_is_refused_before_anything_starts(monkeypatch):
    def broken(function):
        raise RuntimeError("No working C++ compiler found\nand much more")

    monkeypatch.setattr(torch, "compile", broken)
    with pytest.raises(ValueError, match=r"compile does not work here: No working C\+\+ compiler found \("):
        vectors(compile=True)


@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
def test_a_compiled_encoder_learns_the_same_under_the_same_names_and_embeds_as_written(tmp_path):
    compiled, written = advance(vectors(compile=True), 3), advance(vectors(), 3)
    assert list(weights(compiled)) == list(weights(written))
    assert list(compiled.history.loss) == pytest.approx(list(written.history.loss), abs=1e-4)
    compiled.save(tmp_path / "run.pt")
    resumed = training.resume(tmp_path / "run.pt", data=compiled.data)
    assert resumed.settings.compile and same(weights(advance(resumed, 1)), weights(advance(compiled, 1)))
    plain = training.resume(tmp_path / "run.pt", data=compiled.data, compile=False)
    assert not plain.settings.compile
    written.method.load_state_dict(compiled.method.state_dict())
    assert torch.equal(compiled.embed(compiled.data), written.embed(compiled.data))
    assert torch.equal(compiled.project(compiled.data), written.project(compiled.data))


def test_extra_views_are_more_positives_of_the_same_pictures():
    pictures = torch.arange(40)[:, None, None, None].mul(6).expand(40, 3, 16, 16).to(torch.uint8)  # 40 greys
    seen = {}

    class Spy(losses.AttentionNCE):
        def forward(self, z1, z2, **given):
            seen.update(z1=z1.detach(), **{name: v.detach() for name, v in given.items()})
            return super().forward(z1, z2, **given)

    still = views.Augmentation(size=16, jitter_prob=0.0, grayscale=0.0)  # a grey stays what it is
    run = training.Run(data=pictures, loss=Spy(), batch_size=8, steps=2, extra_views=3, augmentation=still)
    run.step()
    assert seen["extra_views"].shape == (8, 3, seen["z1"].shape[1])
    # so every further view of an image is its anchor, to rounding in bfloat16, and no other image's
    apart = (seen["z1"][:, None, None] - seen["extra_views"][None]).norm(dim=-1)  # (anchor, image, view)
    assert (apart.argmin(dim=1) == torch.arange(8)[:, None]).all()
    with pytest.raises(ValueError, match="extra_views is 2, but NTXent takes none"):
        training.Run(data=pictures, batch_size=8, extra_views=2)
    with pytest.raises(ValueError, match="extra_views"):
        training.Run(data=pictures, loss=losses.AttentionNCE(), batch_size=8, extra_views=-1)


# ---- embedding -----------------------------------------------------------------------------------------


def test_looking_at_a_run_leaves_no_trace_in_it():
    watched, alone = small(), advance(small(), 4)
    for _ in range(4):
        watched.step()
        watched.embed(DIGITS)
        watched.project(DIGITS.images[:5])
        watched.history  # noqa: B018
    assert same(weights(watched), weights(alone)) and past(watched).equals(past(alone))


def test_embed_is_the_encoder_before_the_head_and_project_behind_it():
    run = advance(small(), 2)
    z = run.embed(DIGITS)
    assert z.shape == (100, 128) and z.dtype == torch.float32
    assert torch.equal(z, run.embed(DIGITS.images)) and torch.equal(z, run.embed(DIGITS.images.float() / 255))
    torch.testing.assert_close(run.method.head.eval()(z), run.project(DIGITS))
    with pytest.raises(ValueError, match=r"images are \(2, 3, 8, 8\), but the run's have 1 channels"):
        run.embed(torch.zeros(2, 3, 8, 8))


# ---- what goes wrong -----------------------------------------------------------------------------------


class Trouble(nn.Module):
    """NT-Xent that fails once, as told."""

    def __init__(self, at: int, how: str) -> None:
        super().__init__()
        self.inner, self.calls, self.at, self.how = losses.NTXent(0.2), 0, at, how

    def forward(self, z1, z2):
        self.calls += 1
        loss = self.inner(z1, z2)
        if self.calls != self.at:
            return loss
        if self.how == "interrupt":
            raise KeyboardInterrupt
        if self.how == "gradient":  # finite value, infinite gradient
            return loss + (z1 - z1.detach()).abs().sum().add(0).sqrt()
        return loss * float("nan")


@pytest.mark.parametrize("how", ["nan", "gradient"])
def test_a_loss_or_gradient_that_is_not_finite_stops_before_the_step_and_names_it(how):
    run = advance(small(loss=Trouble(at=3, how=how)), 2)
    before = weights(run)
    with pytest.raises(
        ValueError, match=r"step 3 was not taken.*kept: its loss is .*\(with learning_rate = 0.005"
    ):
        run.step()
    assert same(weights(run), before) and run.steps_done == len(run.rows) == 2
    advance(run, 2)  # it fails once only; from there the run is as if nothing had been
    assert same(weights(run), weights(advance(small(loss=Trouble(at=0, how="")), 4)))


def test_a_setting_out_of_range_is_named_with_its_step_and_can_be_set_right():
    run = advance(small(), 1)
    before = weights(run)
    run.loss.temperature = -1.0
    with pytest.raises(ValueError, match=r"step 2 was not taken.*NTXent: temperature is -1.0"):
        run.step()
    assert same(weights(run), before)
    run.loss.temperature, run.learning_rate = 0.2, 0.0
    with pytest.raises(ValueError, match=r"learning_rate is 0\.0, but must be a number above 0"):
        run.step()
    run.learning_rate = 5e-3
    assert same(weights(advance(run, 1)), weights(advance(small(), 2)))


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("temperature", 0.05, r"a run has no 'temperature'; type run\.loss\.temperature = 0\.05"),
        ("temprature", 0.05, r"has no 'temprature'; did you mean 'run\.loss\.temperature'\?"),
        ("momentum", 0.5, r"a run has no 'momentum'; type run\.method\.momentum = 0\.5"),
        (
            "queue_size",
            8,
            r"is fixed when a run is made; type training\.Run\(method_settings=\{'queue_size': 8\}\)",
        ),
        ("optimiser", torch.optim.SGD([torch.zeros(1)]), r"run\.optimiser\.state\.clear\(\) clears"),
        ("images", DIGITS.images, r"images are fixed when a run is made; type training\.Run\(data="),
        ("batch_size", 16, r"batch_size is fixed when a run is made; type training\.Run\(batch_size=16\)"),
        ("seed", 1, r"seed is fixed"),
        ("encoder", None, r"encoder is fixed"),
        ("method", "byol", r"method is fixed"),
        ("step_done", 3, r"has no 'step_done'; did you mean 'steps_done'\?"),
        ("stop", True, r"ends early by run\.steps = run\.steps_done"),
        ("zzz", 3, r"a run has no 'zzz'$"),
    ],
)
def test_an_attribute_that_a_run_does_not_have_is_refused_with_what_to_type(name, value, said):
    run = small(method="moco")
    with pytest.raises(AttributeError, match=said):
        setattr(run, name, value)
    assert same(weights(advance(run, 1)), weights(advance(small(method="moco"), 1)))


@pytest.mark.parametrize("where", ["in a step", "between steps"])
def test_a_keyboard_interrupt_keeps_what_was_learned_and_the_run_can_go_on(where, capsys):
    def interrupt(run):
        if where == "between steps" and run.steps_done == 3:
            torch.set_grad_enabled(False)  # as where it comes while torch switches gradients on again
            raise KeyboardInterrupt

    trouble = Trouble(at=4 if where == "in a step" else 0, how="interrupt")
    run = training.train(data=DIGITS, batch_size=32, steps=6, loss=trouble, callbacks=[interrupt])
    printed = capsys.readouterr()
    assert printed.out.endswith("stopped after 3 of 6 steps; what was learned is kept\n")
    assert "Traceback" not in printed.out and printed.err == ""
    assert run.steps_done == 3 and not run.done
    trouble.at = 0
    assert run.finish(progress=False).done
    assert same(weights(run), weights(advance(small(steps=6, loss=Trouble(0, "")), 6)))


def test_the_device_is_the_cpu_where_there_is_no_cuda(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert training.device() == torch.device("cpu") == training.device("cpu")


# ---- around the loop -----------------------------------------------------------------------------------


def test_progress_shows_the_loss_and_its_chance_level_on_stdout_alone(capsys):
    run = training.train(data=DIGITS, batch_size=32, steps=2)
    printed = capsys.readouterr()
    assert "2/2 steps" in printed.out and printed.err == ""
    assert f"loss {run.rows[-1]['loss']:.4f} (chance {math.log(63):.4f})" in printed.out
    training.train(data=DIGITS, batch_size=32, steps=2, progress=False)
    assert capsys.readouterr().out == ""


def test_fast_shortens_train_and_says_so(monkeypatch, capsys):
    monkeypatch.setenv("CLUTILS_FAST", "1")
    assert training.fast()
    steps = training.train(data=DIGITS, batch_size=16, steps=500, progress=False).steps_done
    assert steps == training.FAST_STEPS == training.fewer(500)
    assert capsys.readouterr().out == f"CLUTILS_FAST=1: {training.FAST_STEPS} steps instead of 500\n"
    assert training.train(data=DIGITS, batch_size=16, steps=2, progress=False).steps_done == 2
    assert capsys.readouterr().out == ""
    monkeypatch.setenv("CLUTILS_FAST", "0")
    assert not training.fast() and training.fewer(500) == 500


@pytest.mark.parametrize("method", ["moco", "byol", "pinda"])
def test_what_follows_the_encoder_is_compiled_too(method, monkeypatch):
    monkeypatch.setattr("clutils.training.devices.demand_compiler", lambda device: None)
    run = vectors(method=method, compile=True)
    run.compile_networks()  # as a step does first
    made = run.method
    assert len(made.networks()) == (2 if method in ("moco", "byol") else 1)
    assert all(network._compiled_call_impl is not None for network in made.networks())


def test_long_data_of_a_wrong_kind_are_quoted_by_their_beginning():
    with pytest.raises(ValueError, match=r"data is of type list, \[\[1\.0, 1\.0.*…, but must be") as caught:
        training.Run(data=[[1.0] * 64] * 500)
    assert len(str(caught.value)) < 400
