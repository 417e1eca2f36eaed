"""Notebook 06: its tables agree with each other; its exercises."""

import pytest
import torch
from torch.nn.functional import softplus

from clutils import anatomy
from clutils.course import attention_nce as lesson
from tests.course.answers import Mistake, judged

# ---- the paper's tables ----------------------------------------------------------------------------------


def test_the_gains_printed_in_table_1_are_its_differences_but_for_one():
    off = []
    for data, mine, theirs, gains in zip(
        lesson.DATA_SETS,
        lesson.TABLE_1["AttentionNCE"],
        lesson.TABLE_1["SimCLR"],
        lesson.TABLE_1_GAINS,
        strict=True,
    ):
        for epochs, a, b, gain in zip((200, 400), mine, theirs, gains, strict=True):
            if abs(a - b - gain) > 0.051:
                off.append((data, epochs, round(a - b, 1), gain))
    assert off == [("STL-10", 400, 9.2, 7.2)]


def test_tables_agree_where_they_tell_the_same_run():
    for data, row in lesson.TABLE_3.items():
        main = lesson.TABLE_1["AttentionNCE"][lesson.DATA_SETS.index(data)][1]
        assert row[3] == main, "M = 4 is the main setting"
    gains = {name: (torch.tensor(b) - torch.tensor(a)).tolist() for name, (a, b) in lesson.TABLE_4.items()}
    gains = {name: [round(gain, 1) for gain in row] for name, row in gains.items()}
    assert gains == {"CIFAR-10": [0.8, 0.6], "CIFAR-100": [8.7, 4.8], "Tiny-ImageNet": [6.2, 5.8]}


def test_the_parts_of_the_gain_are_differences_of_the_tables():
    simclr, attended = (lesson.TABLE_1[name] for name in ("SimCLR", "AttentionNCE"))
    at = {
        data: (ours[1], theirs[1])
        for data, ours, theirs in zip(lesson.DATA_SETS, attended, simclr, strict=True)
    }
    views, negatives, whole, part = lesson.gain_by_parts.answer
    assert whole == pytest.approx(at["CIFAR-10"][0] - at["CIFAR-10"][1])
    assert negatives == pytest.approx(lesson.TABLE_3["CIFAR-10"][0] - at["CIFAR-10"][1])
    assert views + negatives == pytest.approx(whole), "on CIFAR-10 they add up"
    assert part == pytest.approx(2.4 / (at["CIFAR-100"][0] - at["CIFAR-100"][1]))


# ---- its exercises ---------------------------------------------------------------------------------------


def loss_of(alpha=None, beta=None, value=None):
    """AttentionNCE, attention held, with a part exchanged: functions of s, n, τ, d_pos, d_neg."""

    def row(s, n, t, p, m):
        a = alpha(s, n, t, p, m) if alpha else torch.softmax(s.detach() / p, 1)
        b = beta(s, n, t, p, m) if beta else n.shape[1] * torch.softmax(n.detach() / m, 1)
        c = torch.logsumexp(b * n / t, 1) - (a * s).sum(1) / t
        return value(c, s, n, t) if value else softplus(c)

    return row


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
    "attention_row": [loss_of()],
    "both_sides": [
        RIGHT_PAIR,
        (([1.0, 0.0, -1.0], [0.3, 0.3, 0.3, 0.3, -0.3]), ([0.8, 0.8], [0.8] * 2 + [-0.8] * 8)),
    ],
    "mines_hard_positives": [
        mining(farthest, lambda x, pull: x > (1 + 1e-6) * pull.mean(1)),
        mining(farthest, lambda x, pull: x / pull.sum(1) > 0.2 + 1e-6, 0.6),
    ],
}
MISTAKES = {
    "gain_by_parts": [
        Mistake((0.9, 1.1, 3.2, 0.63), "the whole gain"),
        Mistake((0.9, 1.1, 2.0), "four numbers"),
        Mistake((0.9, 1.1, 2.0, 2 / 3), "the views' part"),
    ],
    "attention_row": [
        Mistake(loss_of(value=lambda c, s, n, t: c), "value and gradient"),  # the decoupled loss
        Mistake(lambda s, n, t, p, m: loss_of()(s, n, t, p, m).item(), "tensor"),
    ],
    "both_sides": [
        (([0.9, -0.9], 6 * [0.2]), RIGHT_PAIR[1]),  # the notebook's own, equal negatives
        (([0.9], [0.2] * 5 + [-0.2]), RIGHT_PAIR[1]),  # one positive
        (([0.9, -0.9], [0.2] * 5 + [-1.2]), RIGHT_PAIR[1]),
        RIGHT_PAIR[0],
    ],
    "mines_hard_positives": [
        Mistake(mining(farthest, lambda x, pull: x > 1.0001 * pull.mean(1), 1 / 3), "four anchors in ten"),
        Mistake(lambda loss: "AttentionNCE" not in loss.name, "wrong about a loss made to pull the nearest"),
        Mistake(lambda loss: 0.25, "True or False"),
    ],
}
test_an_exercise_takes_other_ways_and_no_mistake = judged(lesson, ANSWERS, MISTAKES)
