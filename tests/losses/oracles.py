"""Each loss once more, from its paper, in plain Python loops over float64 numbers: no torch, no vectors."""

from __future__ import annotations

import math


def nt_xent(positives, negatives, temperature):
    def one(p):
        denominator = math.exp(p / temperature) + sum(math.exp(n / temperature) for n in negatives)
        return -math.log(math.exp(p / temperature) / denominator)

    return sum(one(p) for p in positives) / len(positives)


def decoupled(positives, negatives, temperature):
    def one(p):
        return -p / temperature + math.log(sum(math.exp(n / temperature) for n in negatives))

    return sum(one(p) for p in positives) / len(positives)


def flatnce(positives, negatives, temperature):
    return 1.0


def macl(positives, negatives, temperature, alpha, threshold, alignment):
    tau = temperature * (1 + alpha * (alignment - threshold))
    tau = max(tau, temperature / 10)

    def one(p):
        negative_sum = sum(math.exp(n / tau) for n in negatives)
        W = negative_sum / (math.exp(p / tau) + negative_sum)
        return math.log1p(negative_sum / math.exp(p / tau)) / W

    return sum(one(p) for p in positives) / len(positives)


def pair_margin(positives, negatives, margin):
    near = sum(2 - 2 * p for p in positives) / len(positives)
    far = [max(0.0, margin - math.sqrt(2 - 2 * n)) ** 2 for n in negatives]
    return near + sum(far) / len(far)


def triplet(positives, negatives, margin):
    hinges = [max(0.0, (2 - 2 * p) - (2 - 2 * n) + margin) for p in positives for n in negatives]
    return sum(hinges) / len(hinges)


def triplet_batch_hard(positives, negatives, margin):
    farthest = max(2 - 2 * p for p in positives)
    nearest = min(2 - 2 * n for n in negatives)
    return max(0.0, farthest - nearest + margin)


# ---- who is compared with whom, in loops as well ----------------------------------------------------------


def cosine(a, b):
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return dot / math.sqrt(sum(x * x for x in a)) / math.sqrt(sum(y * y for y in b))


def rows_of_a_batch(z1, z2, labels=None):
    """[(positives, negatives)] of the 2B anchors of two views, lists of floats."""
    views = list(z1) + list(z2)
    batch = len(z1)
    picture = [i % batch for i in range(2 * batch)]
    group = picture if labels is None else [labels[i] for i in picture]
    rows = []
    for a in range(2 * batch):
        others = [b for b in range(2 * batch) if b != a]
        rows.append(
            (
                [cosine(views[a], views[b]) for b in others if group[b] == group[a]],
                [cosine(views[a], views[b]) for b in others if group[b] != group[a]],
            )
        )
    return rows


def rows_of_a_queue(q, k, queue):
    return [([cosine(a, b)], [cosine(a, negative) for negative in queue]) for a, b in zip(q, k, strict=True)]
