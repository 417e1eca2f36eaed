"""The four arms: equal amounts, whose map lies where, and which way the generator moves."""

import copy
import math

import pytest
import torch

from clutils import data, training
from clutils.course import arms

SCENES = data.load("scenes", limit=64)
VECTORS = data.load("vectors:digits", limit=64)


def run_of(arm=None, pictures=SCENES, rms=0.05, steps=3, **settings) -> training.Run:
    given = {"on": "view"} | settings
    run = training.Run("pinda", data=pictures, batch_size=16, steps=steps, method_settings=given)
    return run if arm is None else arms.use(run, arm, rms)


def drawn(run, x, seed=0):
    return run.method.noise(x, torch.Generator().manual_seed(seed))


def pictures(run):
    return run.images[:8].float() / (255 if run.images.dtype == torch.uint8 else 1)


@pytest.mark.parametrize("arm", arms.ARMS)
@pytest.mark.parametrize("distribution", ["gaussian", "uniform"])
def test_every_channel_of_every_picture_gets_the_same_amount(arm, distribution):
    run = run_of(arm, rms=0.07, distribution=distribution)
    found = drawn(run, pictures(run))
    for values in (found.sample, found.scale):
        torch.testing.assert_close(values.pow(2).mean(dim=(2, 3)).sqrt(), torch.full((8, 3), 0.07))


@pytest.mark.parametrize("arm", arms.ARMS)
def test_an_arm_trains_on_pictures_and_on_vectors_and_only_what_learns_moves(arm):
    for source in (SCENES, VECTORS):
        run = run_of(arm, source, on="view" if source is SCENES else "picture")
        before = copy.deepcopy(run.method.noise.state_dict())
        run.finish(progress=False)
        assert run.history["noise"].tolist() == pytest.approx([0.05] * 3, rel=1e-3)
        assert (run.history["penalty_term"] == 0).all()
        after = run.method.noise.state_dict()
        moved = any(not torch.equal(before[name], after[name]) for name in before)
        assert moved == (arm != "uniform")


def test_dealt_maps_are_the_learned_ones_of_other_pictures_with_the_same_draw():
    own, dealt = run_of("learned"), run_of("dealt")
    dealt.method.load_state_dict(own.method.state_dict())
    x = pictures(own)
    a, b = drawn(own, x), drawn(dealt, x)
    torch.testing.assert_close(b.scale, a.scale.roll(1, dims=0))
    assert not torch.allclose(a.scale, b.scale)
    torch.testing.assert_close((a.sample / a.scale).sign(), (b.sample / b.scale).sign())


def gradient(arm, weights):
    """Of the sum of ε times `weights`, in the last bias and the last weight of the generator."""
    run = run_of(arm)
    (drawn(run, pictures(run)).sample * weights).sum().backward()
    return [p.grad for p in run.method.noise.network[-1].parameters()]


def test_the_adversary_gets_the_learners_gradient_reversed_and_the_dealt_arms_is_the_learners_own():
    weights = torch.randn(8, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    learned, reversed_, dealt = (gradient(arm, weights) for arm in ("learned", "adversarial", "dealt"))
    for a, b, c in zip(learned, reversed_, dealt, strict=True):
        torch.testing.assert_close(a, -b)
        torch.testing.assert_close(a, c)
    assert learned[0].abs().sum() > 0


def test_a_step_down_the_learners_gradient_lowers_the_loss_and_the_adversarys_raises_it():
    """One step of the generator alone, on one batch with one draw, far from where σ vanishes."""
    changed = {}
    for arm in ("learned", "adversarial"):
        run = run_of(arm, rms=0.3)
        method, batch = run.method.eval(), SCENES.images[:32]
        method.half_type = None  # float32: of bfloat16's eight bits a small step may be nothing

        def loss(method=method, batch=batch, run=run):
            return method(batch, run.augmentation, torch.Generator().manual_seed(0))[0]

        before = loss()
        before.backward()
        with torch.no_grad():
            for p in method.noise.parameters():
                p -= 0.003 * p.grad / p.grad.norm()
        changed[arm] = (loss() - before).item()
    assert changed["learned"] < 0 < changed["adversarial"]


def test_a_run_that_cannot_take_an_arm_is_refused():
    for said, arm, run, rms in (
        ("arm is 'shuffled'; there are uniform, learned", "shuffled", run_of(), 0.1),
        ("rms is 0", "learned", run_of(), 0.0),
        ("this is simclr's", "learned", training.Run("simclr", data=SCENES, batch_size=16, steps=1), 0.1),
        ("with a network", "learned", run_of(network="fixed"), 0.1),
        ("without a learned mean", "learned", run_of(learned_mean=True), 0.1),
        ("positive is 'exp'", "learned", run_of(positive="exp"), 0.1),
        ("without a learned mean, rms", "learned", run_of("learned"), 0.1),
    ):
        with pytest.raises(ValueError, match=said):
            arms.use(run, arm, rms)


@pytest.mark.parametrize("arm", ["learned", "dealt", "adversarial"])
def test_the_amount_is_kept_wherever_the_networks_output_has_drifted(arm):
    """A levelled map has no size, so that nothing holds the output up, and softplus(-85) is all but 0."""
    x = pictures(run_of())
    expected = drawn(run_of(arm), x)
    for drift in (-85.0, -1e4):
        run = run_of(arm)
        last = run.method.noise.network[-1]
        with torch.no_grad():
            last.bias[:2] += drift  # two of three channels
        found = drawn(run, x)
        amount = found.sample.pow(2).mean(dim=(2, 3)).sqrt()
        torch.testing.assert_close(amount, torch.full((8, 3), 0.05))
        found.sample.sum().backward()
        assert all(p.grad.isfinite().all() for p in run.method.noise.parameters())
        torch.testing.assert_close(
            found.sample[:, 2], expected.sample[:, 2]
        )  # the channel that did not drift


def test_a_map_in_log_space_is_softplus_up_to_a_factor_of_each_channel():
    a = torch.linspace(-40, 30, 32).view(2, 1, 4, 4).double()
    plain = torch.nn.functional.softplus(a)
    shown = torch.nn.functional.softplus(arms.in_log_space(a))
    torch.testing.assert_close(shown, (plain / plain.amax(dim=(2, 3), keepdim=True)).clamp(min=math.exp(-60)))


@pytest.mark.parametrize("size", [1e-30, 0.0])
def test_a_map_whose_squares_vanish_in_float32_has_a_finite_gradient(size):
    shape = torch.rand(2, 3, 4, 4, generator=torch.Generator().manual_seed(0)) + 0.5
    scale = (size * shape).requires_grad_()
    found = arms.levelled(scale, 0.05)
    found[0, 0, 0, 0].backward()
    assert scale.grad.isfinite().all()
    if size:
        torch.testing.assert_close(found, arms.levelled(shape, 0.05))
