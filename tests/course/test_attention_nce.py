"""Notebook 06: its figures draw what the loss gives, which the notebook checks; its tables; its exercises."""

import math

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy, softplus

from clutils import anatomy, figures, losses
from clutils.course import attention_nce as lesson
from clutils.course.attention_nce import figures as att
from tests.course.answers import Mistake, judged
from tests.course.drawn import line

S = torch.tensor([0.8, 0.1, 0.5], dtype=torch.float64)
N = torch.tensor([0.6, -0.5, 0.3, 0.0], dtype=torch.float64)


def test_the_attention_curves_are_m_alpha_and_beta_and_the_hard_ones_lie_in_the_grey_band():
    left, right = att.attention(S, N, d_pos=(0.1, 5.0), d_neg=(0.3, 5.0)).axes
    for ax, similarities, label, scales in (
        (left, S, "d_pos", (0.1, 5.0)),
        (right, N, "d_neg", (0.3, 5.0)),
    ):
        for d in scales:
            x, y = line(ax, f"{label} = {d:g}")
            assert x.tolist() == sorted(similarities.tolist())
            assert y == pytest.approx(len(x) * np.exp(x / d) / np.exp(x / d).sum())
        band = ax.patches[0].get_bbox()
        assert (band.x0, band.x1) == pytest.approx((0.1, 0.6))
    assert "3 positives and 4 negatives" in figures.alt(left)


def test_dots_above_the_line_are_counted_and_the_papers_side_is_below_it():
    attended, infonce = torch.tensor([3.0, 1.0, 2.0, 4.0]), torch.tensor([2.0, 2.0, 2.0, 1.0])
    ax = att.against_infonce(attended, infonce, "some")
    assert "above the line: 75%" in ax.get_title(loc="left")
    dots = ax.lines[1]
    assert list(dots.get_xdata()) == infonce.tolist() and list(dots.get_ydata()) == attended.tolist()
    grey = ax.collections[0].get_paths()[0]
    assert grey.contains_point((3.0, 2.0)) and not grey.contains_point((2.0, 3.0))
    assert "75% of 4 anchors" in figures.alt(ax)


def test_log_weights_stand_inside_and_outside_the_exponent_beside_the_losses_own_pushes():
    one, s = torch.tensor([[0.6]]).double(), torch.linspace(-0.8, 0.8, 9, dtype=torch.float64)
    left, right = att.inside_or_outside(s, scales=(0.4,), positive=0.6).axes
    loss = losses.AttentionNCE(0.5, d_neg=0.4)
    _, inside = line(left, "inside, d_neg = 0.4")
    assert inside == pytest.approx((att.weights(loss, one[0], s)[1] - 1) * s / 0.5)
    assert (inside[:3] > 0).all(), "far negatives weigh more than in InfoNCE"
    _, outside = line(left, "HCL")
    hcl = losses.HardNegative(0.5, class_prior=0.0, beta=1.0).per_anchor(one, s[None])
    terms = np.exp(outside + s.numpy() / 0.5).sum()
    assert float(hcl) == pytest.approx(math.log(1 + terms / math.exp(1.2))), "the weight is HCL's own"
    assert right.lines[1].get_ydata() == pytest.approx(anatomy.forces(loss, one, s[None])[1][0])


def test_the_loss_over_d_neg_is_the_mean_over_the_anchors_and_grey_where_it_is_near_its_limit():
    draw = torch.Generator().manual_seed(0)
    positives, negatives = (torch.rand(4, k, generator=draw).double() for k in (3, 30))
    scales = [0.05, 0.5, 5.0, 50.0]
    ax = att.along_d_neg(positives, negatives, torch.tensor(scales))
    *means, flat = (
        float(losses.AttentionNCE(0.5, d_neg=d).per_anchor(positives, negatives).mean())
        for d in (*scales, 1e12)
    )
    x, y = line(ax, "loss, mean")
    assert x == pytest.approx(scales) and y == pytest.approx(means)
    near = [d for d, mean in zip(scales, means, strict=True) if abs(mean / flat - 1) < 0.1]
    band = ax.patches[0].get_bbox()
    assert (band.x0, band.x1) == pytest.approx((near[0], near[-1])) and 0 < len(near) < len(scales)


def test_the_pulls_are_drawn_in_the_order_of_similarity():
    ax = att.pulls_by_similarity(S, {"a": 2 * S, "b": -S})
    x, y = line(ax, "a")
    assert x.tolist() == sorted(S.tolist()) and y == pytest.approx([0.2, 1.0, 1.6])
    assert "b: from −0.10 to −0.80" in figures.alt(ax)


# ---- the paper's tables ----------------------------------------------------------------------------------


def test_the_gains_printed_in_table_1_are_its_differences_but_for_one():
    off = []
    for data, mine, theirs, gains in zip(
        att.DATA_SETS, att.TABLE_1["AttentionNCE"], att.TABLE_1["SimCLR"], att.TABLE_1_GAINS, strict=True
    ):
        for epochs, a, b, gain in zip((200, 400), mine, theirs, gains, strict=True):
            if abs(a - b - gain) > 0.051:
                off.append((data, epochs, round(a - b, 1), gain))
    assert off == [("STL-10", 400, 9.2, 7.2)]


def test_tables_agree_where_they_tell_the_same_run():
    for data, row in att.TABLE_3.items():
        main = att.TABLE_1["AttentionNCE"][att.DATA_SETS.index(data)][1]
        assert row[3] == main, "M = 4 is the main setting"
    gains = {name: (torch.tensor(b) - torch.tensor(a)).tolist() for name, (a, b) in att.TABLE_4.items()}
    gains = {name: [round(gain, 1) for gain in row] for name, row in gains.items()}
    assert gains == {"CIFAR-10": [0.8, 0.6], "CIFAR-100": [8.7, 4.8], "Tiny-ImageNet": [6.2, 5.8]}


def test_table_1_is_drawn_row_by_row():
    figure = att.published_accuracies()
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert names == list(att.TABLE_1)
    for column, ax in enumerate(figure.axes):
        hollow = {int(x.get_ydata()[0]): float(x.get_xdata()[0]) for x in ax.lines[1::3]}
        filled = {int(x.get_ydata()[0]): float(x.get_xdata()[0]) for x in ax.lines[2::3]}
        for row, name in enumerate(names):
            early, late = att.TABLE_1[name][column]
            assert hollow[row] == pytest.approx(early, nan_ok=True)
            assert filled[row] == pytest.approx(late, nan_ok=True)
    best = [max(row[k][1] for row in att.TABLE_1.values() if row[k][1] == row[k][1]) for k in range(4)]
    assert best == [late for _, late in att.TABLE_1["AttentionNCE"]], "the alt text says it is the highest"


def test_tables_3_and_4_are_drawn():
    left, right = att.published_ablations().axes
    for data, row in att.TABLE_3.items():
        x, y = line(left, f"{data}, AttentionNCE")
        assert x.tolist() == [1, 2, 3, 4, 5, 6] and y.tolist() == list(row)
    heights = sorted(bar.get_height() for bar in right.patches)
    assert heights == sorted(values[1] for rows in att.TABLE_4.values() for values in rows)


# ---- its exercises ---------------------------------------------------------------------------------------


def loss_of(alpha=None, beta=None, value=None):
    """AttentionNCE, attention held, with a part exchanged: functions of s, n, τ, d_pos, d_neg."""

    def row(s, n, t, p, m):
        a = alpha(s, n, t, p, m) if alpha else torch.softmax(s.detach() / p, 1)
        b = beta(s, n, t, p, m) if beta else n.shape[1] * torch.softmax(n.detach() / m, 1)
        c = torch.logsumexp(b * n / t, 1) - (a * s).sum(1) / t
        return value(c, s, n, t) if value else softplus(c)

    return row


def exponentials(s, n, t, p, m):
    a, b = (torch.exp(x.detach() / d) for x, d in ((s, p), (n, m)))
    a, b = a / a.sum(1, keepdim=True), n.shape[1] * b / b.sum(1, keepdim=True)
    up = torch.exp((a * s).sum(1) / t)
    return -torch.log(up / (up + torch.exp(b * n / t).sum(1)))


def under_no_grad(s, n, t, p, m):
    with torch.no_grad():
        a, b = torch.softmax(s / p, 1), n.shape[1] * torch.softmax(n / m, 1)
    logits = torch.cat([(a * s).sum(1, keepdim=True), b * n], 1) / t
    return cross_entropy(logits, torch.zeros(len(s), dtype=torch.long), reduction="none")


RIGHT_PAIR = ([0.9, -0.9], [0.2] * 5 + [-0.2]), ([0.5, 0.5], [0.9] + 9 * [-0.5])


def mining(pick, measure, majority=0.5, few=False):
    """A test of hard positives: of which positive, by which measure of its pull against the others'."""

    def test(loss):
        draw = torch.Generator().manual_seed(4)
        s, n = (2 * torch.rand(300, k, generator=draw).double() - 1 for k in (1 if few else 5, 30))
        pull = anatomy.forces(loss, s, n)[0]
        chosen = pull.gather(1, pick(s))[:, 0]
        return bool(measure(chosen, pull).double().mean() > majority)

    return test


def farthest(s):
    return s.argmin(1, keepdim=True)


def nearest(s):
    return s.argmax(1, keepdim=True)


ANSWERS = {
    "attention_row": [
        loss_of(),
        exponentials,
        under_no_grad,
    ],
    "both_sides": [
        RIGHT_PAIR,
        (([1.0, 0.0, -1.0], [0.3, 0.3, 0.3, 0.3, -0.3]), ([0.8, 0.8], [0.8] * 2 + [-0.8] * 8)),
        tuple(tuple(torch.tensor(part) for part in anchor) for anchor in RIGHT_PAIR),
    ],
    "mines_hard_positives": [
        mining(farthest, lambda x, pull: x > (1 + 1e-6) * pull.mean(1)),
        mining(farthest, lambda x, pull: x / pull.sum(1) > 0.2 + 1e-6, 0.6),
        mining(farthest, lambda x, pull: x - pull.mean(1) > 1e-8 * pull.mean(1)),
        lambda loss: mining(farthest, lambda x, pull: x > 1.0001 * pull.mean(1))(loss) is True,
        lambda loss: torch.tensor(mining(farthest, lambda x, pull: x > 1.0001 * pull.mean(1))(loss)),
    ],
}
MISTAKES = {
    "attention_row": [
        Mistake(loss_of(alpha=lambda s, n, t, p, m: torch.softmax(s / p, 1)), "the gradient through α"),
        Mistake(
            loss_of(beta=lambda s, n, t, p, m: n.shape[1] * torch.softmax(n / m, 1)), "the gradient through β"
        ),
        Mistake(loss_of(beta=lambda s, n, t, p, m: torch.softmax(n.detach() / m, 1)), "without its factor N"),
        Mistake(loss_of(value=lambda c, s, n, t: c), "value and gradient"),  # the decoupled loss
        Mistake(loss_of(value=lambda c, s, n, t: softplus(c).mean()), "mean over the anchors"),
        Mistake(loss_of(value=lambda c, s, n, t: softplus(c)[:, None]), "(1, 1)"),
        Mistake(loss_of(value=lambda c, s, n, t: -softplus(c)), "value and gradient"),
        Mistake(loss_of(value=lambda c, s, n, t: torch.sigmoid(c)), "value and gradient"),  # the gate
        Mistake(loss_of(value=lambda c, s, n, t: t * softplus(c)), "value and gradient"),
        Mistake(loss_of(value=lambda c, s, n, t: softplus(c.detach()) + c - c.detach()), "gradient by s⁺"),
        Mistake(
            loss_of(beta=lambda s, n, t, p, m: n.shape[1] * (n.detach() / m).flatten().softmax(0).view_as(n)),
            "value and",
        ),
        Mistake(lambda s, n, t, p, m: loss_of()(s.detach(), n, t, p, m), "gradient by s⁺"),
        Mistake(lambda s, n, t, p, m: loss_of()(s, n, t, p, m).item(), "tensor"),
    ],
    "both_sides": [
        RIGHT_PAIR[::-1],
        (RIGHT_PAIR[0], RIGHT_PAIR[0]),
        (RIGHT_PAIR[1], RIGHT_PAIR[1]),
        (([0.9, -0.9], 6 * [0.2]), RIGHT_PAIR[1]),  # the notebook's own, equal negatives
        (([0.9], [0.2] * 5 + [-0.2]), RIGHT_PAIR[1]),  # one positive
        (([0.9, -0.9], [0.2, 0.2, -0.2]), RIGHT_PAIR[1]),  # three negatives
        (([0.9, -0.9], [0.2] * 5 + [-1.2]), RIGHT_PAIR[1]),
        (([0.5, 0.4], [0.2] * 5 + [-0.2]), RIGHT_PAIR[1]),  # nearly on the line
        RIGHT_PAIR[0],
        (0.9, -0.9),
    ],
    "mines_hard_positives": [
        Mistake(lambda loss: False, "can't say yes"),
        Mistake(lambda loss: True, "can't say no"),
        Mistake(mining(farthest, lambda x, pull: x > pull.sum(1)), "can't say yes"),
        Mistake(mining(farthest, lambda x, pull: x > 0), "can't say no"),
        Mistake(mining(nearest, lambda x, pull: x > 1.01 * pull.mean(1)), "nearest"),
        Mistake(mining(farthest, lambda x, pull: x < 0.99 * pull.mean(1)), "nearest"),
        Mistake(mining(farthest, lambda x, pull: x > 0.3), "size"),
        Mistake(mining(farthest, lambda x, pull: x - pull.mean(1) > 0.1), "size"),
        Mistake(mining(farthest, lambda x, pull: x >= (1 - 1e-9) * pull.mean(1)), "rounding"),
        Mistake(mining(farthest, lambda x, pull: x > 1.01 * pull.mean(1), few=True), "can't say yes"),
        Mistake(mining(farthest, lambda x, pull: x > 1.05 * pull.median(1).values), "against the nearest"),
        Mistake(mining(farthest, lambda x, pull: x > 1.01 * pull.amin(1)), "against the nearest"),
        Mistake(mining(farthest, lambda x, pull: x / pull.sum(1) > 0.21), "much more"),
        Mistake(mining(farthest, lambda x, pull: x > 2 * pull.mean(1)), "much more"),
        Mistake(mining(farthest, lambda x, pull: x > 1.0001 * pull.mean(1), 0.9), "every anchor"),
        Mistake(mining(farthest, lambda x, pull: x > 1.0001 * pull.mean(1), 0), "any anchor"),
        Mistake(mining(farthest, lambda x, pull: x.mean() > 1.0001 * pull.mean()), "hardest pulled"),
        Mistake(mining(farthest, lambda x, pull: x > 1.0001 * pull.topk(2, dim=1).values[:, 1]), "the most"),
        Mistake(mining(farthest, lambda x, pull: (x > 1.0001 * pull.mean(1))[:1]), "an anchor or two"),
        Mistake(
            mining(farthest, lambda x, pull: (x / pull.sum(1)).mean() > 0.2001), "an average over the anchors"
        ),
        Mistake(
            mining(farthest, lambda x, pull: x.median() > 1.0001 * pull.mean(1).median()),
            ("an average over the anchors", "does it a little"),
        ),
        Mistake(lambda loss: "AttentionNCE" not in loss.name, "wrong about a loss made to pull the nearest"),
        Mistake(lambda loss: 0.25, "True or False"),
    ],
}
test_an_exercise_takes_other_ways_and_no_mistake = judged(lesson, ANSWERS, MISTAKES)
