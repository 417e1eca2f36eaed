"""Each loss once more, from its paper, in plain Python loops over float64 numbers: no torch, no vectors."""

import functools
import math


def of_each(formula):
    """A formula of one positive, as the mean over all of an anchor's."""

    @functools.wraps(formula)
    def mean(positives, *further, **named):
        return sum(formula(p, *further, **named) for p in positives) / len(positives)

    return mean


@of_each
def nt_xent(positives, negatives, temperature):
    e_plus = math.exp(positives / temperature)
    return -math.log(e_plus / (e_plus + sum(math.exp(n / temperature) for n in negatives)))


@of_each
def decoupled(positives, negatives, temperature):
    return -positives / temperature + math.log(sum(math.exp(n / temperature) for n in negatives))


@of_each
def decoupled_mean(positives, negatives, temperature):
    expected = sum(math.exp(n / temperature) for n in negatives) / len(negatives)
    return temperature * math.log(expected) - positives


def in_a_ball(positives, negatives, temperature, radius):
    return decoupled_mean(positives, negatives, temperature) + temperature * radius


def flatnce(positives, negatives, temperature):
    return 1.0


@of_each
def macl(positives, negatives, temperature, alpha, alignment_threshold, alignment):
    tau = temperature * (1 + alpha * (alignment - alignment_threshold))
    tau = max(tau, temperature / 10)
    e_plus, negative_sum = math.exp(positives / tau), sum(math.exp(n / tau) for n in negatives)
    return math.log1p(negative_sum / e_plus) / (negative_sum / (e_plus + negative_sum))


def pair_margin(positives, negatives, margin):
    near = sum(2 - 2 * p for p in positives) / len(positives)
    far = [max(0.0, margin - math.sqrt(2 - 2 * n)) ** 2 for n in negatives]
    return near + sum(far) / len(far)


def triplet(positives, negatives, margin, batch_hard, semi_hard):
    if batch_hard:
        farthest, nearest = max(2 - 2 * p for p in positives), min(2 - 2 * n for n in negatives)
        return max(0.0, farthest - nearest + margin)
    if semi_hard:
        farther = [[n for n in negatives if n < p] for p in positives]
        hinges = [margin + 2 * max(f) - 2 * p if f else 0.0 for p, f in zip(positives, farther, strict=True)]
        return sum(max(0.0, hinge) for hinge in hinges) / len(positives)
    hinges = [max(0.0, (2 - 2 * p) - (2 - 2 * n) + margin) for p in positives for n in negatives]
    return sum(hinges) / len(hinges)


def debiased(positives, negatives, temperature, class_prior):
    return hard_negative(positives, negatives, temperature, class_prior, 0.0)


@of_each
def hard_negative(positives, negatives, temperature, class_prior, beta):
    N, e_plus = len(negatives), math.exp(positives / temperature)
    e_minus = [math.exp(n / temperature) for n in negatives]
    mean = sum(e**beta for e in e_minus) / N
    total = sum(e**beta / mean * e for e in e_minus)
    Ng = (total - N * class_prior * e_plus) / (1 - class_prior)
    Ng = max(Ng, N * math.exp(-1 / temperature))
    return -math.log(e_plus / (e_plus + Ng))


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


@of_each
def dual_temperature(positives, negatives, temperature, ratio):
    def W(tau):
        negative_sum = sum(math.exp((n - positives) / tau) for n in negatives)
        return negative_sum / (1 + negative_sum)

    ce = math.log1p(sum(math.exp((n - positives) / temperature) for n in negatives))
    return W(ratio * temperature) / W(temperature) * ce


def clip(z1, z2, temperature):
    """z1, z2: lists of vectors."""
    batch = range(len(z1))
    table = [[math.exp(cosine(a, b) / temperature) for b in z2] for a in z1]
    rows = [-math.log(table[i][i] / sum(table[i])) for i in batch]
    columns = [-math.log(table[i][i] / sum(row[i] for row in table)) for i in batch]
    return (sum(rows) / len(rows) + sum(columns) / len(columns)) / 2


def barlow_twins(z1, z2, off_diagonal):
    total = 0.0
    for f, a in enumerate(zip(*z1, strict=True)):
        for g, b in enumerate(zip(*z2, strict=True)):
            C = cosine([x - sum(a) / len(a) for x in a], [x - sum(b) / len(b) for x in b])
            total += (1 - C) ** 2 if f == g else off_diagonal * C**2
    return total


def regression(z1, z2):
    def unit(a):
        return [x / math.sqrt(inner(a, a)) for x in a]

    difference = [[x - y for x, y in zip(unit(a), unit(b), strict=True)] for a, b in zip(z1, z2, strict=True)]
    return sum(inner(d, d) for d in difference) / len(z1)


def siglip(positives, negatives, temperature, bias):
    def of_a_pair(s, match):
        return math.log(1 + math.exp(-match * (s / temperature + bias)))

    return sum(of_a_pair(p, 1) for p in positives) / len(positives) + sum(of_a_pair(n, -1) for n in negatives)


def adnce(positives, negatives, temperature, mean, deviation):
    gauss = [math.exp(-0.5 * ((n - mean) / deviation) ** 2) for n in negatives]
    weights = [g * len(negatives) / sum(gauss) for g in gauss]
    weighed = sum(w * math.exp(n / temperature) for w, n in zip(weights, negatives, strict=True))
    return sum(math.log1p(weighed / math.exp(p / temperature)) for p in positives) / len(positives)


@of_each
def rince(positives, negatives, temperature, q, weight):
    e, negative_sum = math.exp(positives / temperature), sum(math.exp(n / temperature) for n in negatives)
    return -(e**q) / q + (weight * (e + negative_sum)) ** q / q


@of_each
def alpha_cl(positives, negatives, temperature, alpha):
    return sum(math.exp(-((1 - n) ** alpha) / temperature) * (n - positives) for n in negatives)


def weighted_decoupled(rows, temperature, sigma):
    """rows: [(positives, negatives)] of all anchors -> their values."""
    every = [math.exp(p / sigma) for positives, _ in rows for p in positives]
    values = []
    for positives, negatives in rows:
        weights = [2 - len(every) * math.exp(p / sigma) / sum(every) for p in positives]
        near = sum(w * p / temperature for w, p in zip(weights, positives, strict=True)) / len(positives)
        values.append(-near + math.log(sum(math.exp(n / temperature) for n in negatives)))
    return values


def robust(positives, negatives, radius):
    """The dual by golden-section search over log τ: convex in τ, so of one minimum."""
    top, K = max(negatives), len(negatives)

    def dual(log_tau):
        tau = math.exp(log_tau)
        return top + tau * math.log(sum(math.exp((n - top) / tau) for n in negatives) / K) + tau * radius

    low, high, golden = -18.0, 18.0, (math.sqrt(5) - 1) / 2
    for _ in range(200):
        a, b = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, b) if dual(a) < dual(b) else (a, high)
    return dual(low) - sum(positives) / len(positives)


def sogclr(rows, averages, index, temperature, rate):
    """rows of the 2B anchors of two views; averages: {sample: u} -> (values, forces as (pull, pushes))."""
    values, forces, found = [], [], {}
    for a, ((positive,), negatives) in enumerate(rows):
        sample = index[a % len(index)]
        g = sum(math.exp(n / temperature) for n in negatives) / len(negatives)
        u = (1 - rate) * averages[sample] + rate * g if sample in averages else g
        found.setdefault(sample, []).append(u)
        values.append(temperature * math.log(u) - positive)
        forces.append((1.0, [math.exp(n / temperature) / len(negatives) / u for n in negatives]))
    averages.update({sample: sum(us) / len(us) for sample, us in found.items()})
    return values, forces


def n_pair(z1, z2):
    total = 0.0
    for i, a in enumerate(z1):
        own = inner(a, z2[i])
        total += math.log(1 + sum(math.exp(inner(a, b) - own) for j, b in enumerate(z2) if j != i))
    return total / len(z1)


def spectral(z1, z2):
    B = len(z1)
    near = sum(inner(a, b) for a, b in zip(z1, z2, strict=True)) / B
    far = sum(inner(z1[i], z2[j]) ** 2 for i in range(B) for j in range(B) if i != j) / (B * (B - 1))
    return -2 * near + far


def nnclr(z1, z2, temperature, queue):
    def one_way(first, second):
        total = 0.0
        for i, z in enumerate(first):
            near = max(queue, key=lambda q: cosine(z, q))
            logits = [math.exp(cosine(near, other) / temperature) for other in second]
            total -= math.log(logits[i] / sum(logits))
        return total / len(first)

    return (one_way(z1, z2) + one_way(z2, z1)) / 2


def vicreg(z1, z2, invariance, variance, covariance):
    B, D = len(z1), len(z1[0])
    value = invariance * sum(
        (x - y) ** 2 for a, b in zip(z1, z2, strict=True) for x, y in zip(a, b, strict=True)
    )
    value /= B
    for z in (z1, z2):
        columns = [[x - sum(column) / B for x in column] for column in zip(*z, strict=True)]
        for f in range(D):
            for g in range(D):
                C = inner(columns[f], columns[g]) / (B - 1)
                value += variance * max(0.0, 1 - math.sqrt(C + 1e-4)) / D if f == g else covariance * C**2 / D
    return value


def sigreg(z1, z2, weight, knots, directions):
    """directions: lists of D numbers, of unit length."""
    B, D = len(z1), len(z1[0])
    near = sum((x - y) ** 2 / 4 for a, b in zip(z1, z2, strict=True) for x, y in zip(a, b, strict=True)) / (
        B * D
    )
    total, step = 0.0, 3 / (knots - 1)
    for z in (z1, z2):
        for a in directions:
            for k in range(knots):
                t, phi = k * step, math.exp(-((k * step) ** 2) / 2)
                real = sum(math.cos(t * inner(a, x)) for x in z) / B - phi
                imaginary = sum(math.sin(t * inner(a, x)) for x in z) / B
                end = 0.5 if k in (0, knots - 1) else 1.0
                total += 2 * B * end * step * (real**2 + imaginary**2) * phi
    return (1 - weight) * near + weight * total / (2 * len(directions))


# ---- who is compared with whom, in loops as well ----------------------------------------------------------


def inner(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def cosine(a, b):
    return inner(a, b) / math.sqrt(sum(x * x for x in a)) / math.sqrt(sum(y * y for y in b))


def negatives_in_order(anchor, batch, other_view=False):
    """Whose similarities a row of negatives holds, in order, as rows of [*z1, *z2]."""
    views = [anchor < batch] if other_view else [False, True]
    pictures = [batch - 1 if i == anchor % batch else i for i in range(batch - 1)]
    return [batch * second + i for second in views for i in pictures]


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
