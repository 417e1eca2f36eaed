"""Small transformers on Python's own help, by several views; and features of sentences that learn nothing."""

import importlib
import inspect
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clutils import data, losses, measures, training
from clutils.course import evidence
from clutils.encoders.transformer import Transformer
from clutils.views import sentences as views

NEIGHBOURS, WIDTH, STEPS, BATCH, RATE, TEMPERATURE = 10, 64, 6, 64, 2e-3, 0.05
VIEWS = {  # name -> the augmentation, and the encoder's dropout
    "dropout": (views.Dropout(), 0.1),
    "dropout and deletion": (views.Deletion(0.3), 0.1),
    "dropout and reordering": (views.Reordering(6.0), 0.1),
}
MODULES = (  # with many docstrings
    *("argparse", "asyncio", "datetime", "decimal", "email.message", "logging", "pathlib", "random"),
    *("statistics", "tarfile", "unittest.mock", "zipfile"),
)
UNTRAINED, CONTROL, RECORD = "untrained", "with labels", "sentences"
WAYS = (UNTRAINED, *VIEWS, CONTROL)


def run_of(
    view: str, train: data.SentenceSet, seed: int = 0, loss: losses.Loss | None = None, **settings: Any
) -> training.Run:
    """SimCLR on sentences by one of `VIEWS`, from scratch: half the width of `encoders.NAMES`' transformer.

    - loss: None = NT-Xent at SimCSE's τ = 0.05; settings: further ones of `training.Run`
    """
    augmentation, dropout = VIEWS[view]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        encoder = Transformer(train.tokens.shape[1], width=WIDTH, dropout=dropout)
    run = training.Run(
        data=train,
        encoder=encoder,
        augmentation=augmentation,
        loss=losses.NTXent(TEMPERATURE) if loss is None else loss,
        seed=seed,
        precision="float32",
        **{"steps": STEPS, "batch_size": BATCH, "learning_rate": RATE} | settings,
    )
    training.shorten(run)
    return run


def trained(way: str, train: data.SentenceSet, seed: int = 0, **settings: Any) -> training.Run:
    """One of `WAYS`, trained: by a view; "with labels" by SupCon on dropout's; "untrained" not at all."""
    if way == CONTROL:
        return run_of("dropout", train, seed, losses.SupCon(0.3), method="supcon", **settings).finish(
            progress=False
        )
    if way == UNTRAINED:
        return run_of("dropout", train, seed, **settings)
    return run_of(way, train, seed, **settings).finish(progress=False)


def deletion_gain(
    train: data.SentenceSet, test: data.SentenceSet, seed: int, **settings: Any
) -> dict[str, float]:
    """Accuracies before and after training with deleted words, and the test part's own error.

    test_error: standard error of their difference, had other test sentences been drawn (paired, sentence by
    sentence). Together with the spread over seeds it says how far such a gain carries.
    """
    right = {}
    for way in (UNTRAINED, "dropout and deletion"):
        run = trained(way, train, seed, **settings)
        z, asked = (F.normalize(run.embed(of), dim=1) for of in (train, test))
        right[way] = (measures.knn_vote(asked @ z.T, train.labels, NEIGHBOURS) == test.labels).double()
    before, after = right.values()
    error = float((after - before).std() / len(test) ** 0.5)
    return {"untrained": float(before.mean()), "deletion": float(after.mean()), "test_error": error}


def docstrings() -> data.SentenceSet:
    """Sentences of the docstrings of `MODULES`, each once; the label is the module."""
    found: dict[str, str] = {}
    for name in MODULES:
        module = importlib.import_module(name)
        for _, member in sorted(inspect.getmembers(module, callable)):
            for text in data.sentences.sentences(inspect.getdoc(member) or ""):
                found.setdefault(text, name)
    source = f"docstrings of {len(MODULES)} modules of Python's library"
    return data.sentence_set(list(found), list(found.values()), source=source)


def differences(rows: pd.DataFrame) -> str:
    """Every way minus the untrained encoder, in points, seed by seed, with half the 95 % interval.

    Where the control, which has labels, is not above the untrained encoder, no view is compared with it.
    """
    by_way = rows.pivot(index="seed", columns="way", values="encoder")
    gaps = {
        way: evidence.paired(by_way[way].tolist(), by_way[UNTRAINED].tolist())
        for way in WAYS
        if way != UNTRAINED
    }
    lines = []
    for way, gap in gaps.items():
        judged = way == CONTROL or gaps[CONTROL].verdict == "above"
        verdict = gap.verdict if judged else "not decided (the control is not above)"
        lines.append(f"{way} minus untrained: {100 * gap.mean:+.1f} ± {100 * gap.half:.1f}, {verdict}")
    return "\n".join(["in points, ± half of the 95 % interval:", *lines])


def accuracy(z: Tensor, train: data.SentenceSet, z_test: Tensor, test: data.SentenceSet) -> float:
    """Share of test sentences whose topic wins the vote of the ten nearest training sentences, by cosine.

    A vote weighs exp(cosine / 0.1), as in `measures.knn_accuracy`. For TF-IDF that is several points above
    scikit-learn's KNeighborsClassifier, where all votes are equal.
    """
    return measures.knn_accuracy(z, train.labels, z_test, test.labels, k=NEIGHBOURS)


def tf_idf(train: data.SentenceSet, *others: data.SentenceSet) -> list[Tensor]:
    """Words weighed by how rare they are in the training part: (N, words) of it and of each other set."""
    weigh, weighed = _weighed(train.texts)
    return [weighed, *(torch.from_numpy(weigh.transform(of.texts).toarray()).float() for of in others)]


@lru_cache(maxsize=2)  # a search box asks for each query
def _weighed(texts: tuple[str, ...]) -> tuple[Any, Tensor]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    weigh = TfidfVectorizer(analyzer=data.sentences.words, sublinear_tf=True)
    return weigh, torch.from_numpy(weigh.fit_transform(texts).toarray()).float()


def counted(train: data.SentenceSet, test: data.SentenceSet, seeds: int = 3) -> pd.DataFrame:
    """Accuracy of counted words, with no step made: a row a way, its width and accuracy in percent.

    TF-IDF as it is, and squeezed into as many numbers as an encoder has: along its strongest directions
    (SVD), and along random ones, which is to sum random word vectors, each weighed by how rare its word is.
    """
    from sklearn.decomposition import TruncatedSVD

    weighed, asked = tf_idf(train, test)
    bags = measures.raw_inputs(train), measures.raw_inputs(test)
    rows = [("bag of words", bags[0].shape[1], [accuracy(bags[0], train, bags[1], test)])]
    rows.append(("TF-IDF", weighed.shape[1], [accuracy(weighed, train, asked, test)]))
    for width in (WIDTH, 4 * WIDTH):
        squeeze = TruncatedSVD(width, random_state=0).fit(weighed.numpy())
        z, z_test = (torch.from_numpy(squeeze.transform(x.numpy())) for x in (weighed, asked))
        rows.append(("TF-IDF and SVD", width, [accuracy(z, train, z_test, test)]))
        found = []
        for seed in range(seeds):
            dice = torch.Generator().manual_seed(seed)
            vectors = torch.randn(weighed.shape[1], width, generator=dice)
            found.append(accuracy(weighed @ vectors, train, asked @ vectors, test))
        rows.append(("random word vectors, weighed by rarity", width, found))
    return pd.DataFrame(
        {
            "way": [way for way, *_ in rows],
            "numbers": [width for _, width, _ in rows],
            "accuracy": [100 * sum(found) / len(found) for *_, found in rows],
        }
    ).set_index(["way", "numbers"])


def word_means(encoder: nn.Module, tokens: Tensor) -> Tensor:
    """The mean of a sentence's word vectors, out of the encoder's table: (N, L) -> (N, width)."""
    table = encoder.words.weight.detach().cpu()
    there = (tokens > 0).float()[..., None]
    return (table[tokens] * there).sum(dim=1) / there.sum(dim=1).clamp(min=1)


def worth(run: training.Run, train: data.SentenceSet, test: data.SentenceSet) -> dict[str, float]:
    """kNN by a run's features, and by the mean of its word vectors alone."""
    encoder = run.encoder
    means = [word_means(encoder, of.tokens) for of in (train, test)]
    return {
        "encoder": accuracy(run.embed(train), train, run.embed(test), test),
        "mean of its word vectors": accuracy(means[0], train, means[1], test),
    }


def table(rows: list[Mapping[str, Any]]) -> pd.DataFrame:
    """Rows of way, seed and accuracies -> way x what: 'mean ± standard deviation' over seeds, in percent."""
    cells = pd.DataFrame(rows).drop(columns="seed").groupby("way", sort=False)
    return cells.agg(lambda own: f"{100 * own.mean():.1f} ± {100 * own.std():.1f}")
