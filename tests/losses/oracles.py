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


def debiased(positives, negatives, temperature, class_prior):
    return hard_negative(positives, negatives, temperature, class_prior, 0.0)


def hard_negative(positives, negatives, temperature, class_prior, beta):
    N = len(negatives)

    def one(p):
        e_plus = math.exp(p / temperature)
        e_minus = [math.exp(n / temperature) for n in negatives]
        weights = [e**beta for e in e_minus]
        mean = sum(weights) / N
        total = sum(w / mean * e for w, e in zip(weights, e_minus, strict=True))
        Ng = (total - N * class_prior * e_plus) / (1 - class_prior)
        Ng = max(Ng, N * math.exp(-1 / temperature))
        return -math.log(e_plus / (e_plus + Ng))

    return sum(one(p) for p in positives) / len(positives)


def attention_nce(positives, negatives, temperature, d_pos, d_neg):
    def shares(values, scale):
        e = [math.exp(v / scale) for v in values]
        return [x / sum(e) for x in e]

    prototype = sum(a * p for a, p in zip(shares(positives, d_pos), positives, strict=True))
    betas = [len(negatives) * b for b in shares(negatives, d_neg)]
    e_plus = math.exp(prototype / temperature)
    e_minus = sum(math.exp(b * n / temperature) for b, n in zip(betas, negatives, strict=True))
    return -math.log(e_plus / (e_plus + e_minus))


def supcon(positives, negatives, temperature):
    everyone = sum(math.exp(s / temperature) for s in [*positives, *negatives])
    return sum(-math.log(math.exp(p / temperature) / everyone) for p in positives) / len(positives)


def dual_temperature(positives, negatives, temperature, ratio):
    def one(p):
        def W(tau):
            negative_sum = sum(math.exp((n - p) / tau) for n in negatives)
            return negative_sum / (1 + negative_sum)

        ce = math.log1p(sum(math.exp((n - p) / temperature) for n in negatives))
        return W(ratio * temperature) / W(temperature) * ce

    return sum(one(p) for p in positives) / len(positives)


def clip(z1, z2, temperature):
    """z1, z2: lists of vectors."""
    batch = range(len(z1))
    table = [[math.exp(cosine(a, b) / temperature) for b in z2] for a in z1]
    rows = [-math.log(table[i][i] / sum(table[i])) for i in batch]
    columns = [-math.log(table[i][i] / sum(row[i] for row in table)) for i in batch]
    return (sum(rows) / len(rows) + sum(columns) / len(columns)) / 2


def barlow_twins(z1, z2, off_diagonal):
    def correlation(a, b):
        a, b = [x - sum(a) / len(a) for x in a], [x - sum(b) / len(b) for x in b]
        return cosine(a, b)

    features1, features2 = list(zip(*z1, strict=True)), list(zip(*z2, strict=True))
    total = 0.0
    for f, a in enumerate(features1):
        for g, b in enumerate(features2):
            C = correlation(a, b)
            total += (1 - C) ** 2 if f == g else off_diagonal * C**2
    return total


def regression(z1, z2):
    def unit(a):
        length = math.sqrt(sum(x * x for x in a))
        return [x / length for x in a]

    squared = [
        sum((x - y) ** 2 for x, y in zip(unit(a), unit(b), strict=True)) for a, b in zip(z1, z2, strict=True)
    ]
    return sum(squared) / len(squared)


# ---- who is compared with whom, in loops as well ----------------------------------------------------------


def cosine(a, b):
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return dot / math.sqrt(sum(x * x for x in a)) / math.sqrt(sum(y * y for y in b))


def negatives_in_order(anchor, batch, other_view=False):
    """Whose similarities a row of negatives holds, in order, as rows of [*z1, *z2]."""
    first = range(batch) if anchor < batch else range(batch, 2 * batch)
    second = range(batch, 2 * batch) if anchor < batch else range(batch)
    views = [second] if other_view else [first, second]
    return [b for view in views for b in view if b % batch != anchor % batch]


def rows_of_a_batch(z1, z2, labels=None, other_view=False):
    """[(positives, negatives)] of the 2B anchors of two views, lists of floats."""
    views = list(z1) + list(z2)
    batch = len(z1)
    picture = [i % batch for i in range(2 * batch)]
    group = picture if labels is None else [labels[i] for i in picture]
    rows = []
    for a in range(2 * batch):
        others = [b for b in range(2 * batch) if b != a]
        if other_view:
            others = [b for b in others if (b < batch) != (a < batch)]
        rows.append(
            (
                [cosine(views[a], views[b]) for b in others if group[b] == group[a]],
                [cosine(views[a], views[b]) for b in others if group[b] != group[a]],
            )
        )
    return rows


def rows_of_a_queue(q, k, queue):
    return [([cosine(a, b)], [cosine(a, negative) for negative in queue]) for a, b in zip(q, k, strict=True)]
