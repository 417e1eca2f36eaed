"""HAR and Reuters from objects of the fetchers' layout, every way to lack them, and one's own arrays."""

import pickle
import socket
import urllib.error
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn.datasets
import torch

from clutils import data, training, views
from clutils.data import downloads, vectors

HAR_COUNTS = (1226, 1073, 986, 1286, 1374, 1407)  # windows of each activity in the authors' training part
HAR_TEST_COUNTS = (496, 471, 420, 491, 532, 537)


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CLUTILS_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(vectors, "reach", lambda url: None)


def har_bunch(shuffle: bool = False) -> SimpleNamespace:
    """What fetch_openml('har', as_frame=False) gives: float64 (10299, 561) and the strings '1' to '6'."""
    rng = np.random.default_rng(0)
    activities = np.arange(1, 7)
    parts = [rng.permutation(np.repeat(activities, c)) for c in (HAR_COUNTS, HAR_TEST_COUNTS)]
    target = np.concatenate(parts)
    if shuffle:
        target = rng.permutation(target)
    values = rng.uniform(-1, 1, (10_299, 561))
    values[:, 0] = target  # follows the row wherever it goes
    values[:, 1] = np.arange(10_299)
    values[:, 2] = 5.0
    return SimpleNamespace(data=values, target=target.astype(str).astype(object))


def reuters_bunch(count: int = 15_000) -> SimpleNamespace:
    """What fetch_rcv1() gives: sparse weights (N, 47236), sparse 0/1 topics (N, 103), their sorted names."""
    rng = np.random.default_rng(1)
    names = sorted([*vectors.ROOTS, *(f"Z{n:02}" for n in range(50)), *(f"A{n:02}" for n in range(49))])
    has = np.zeros((count, 103), np.uint8)
    roots = rng.integers(4, size=count)
    for row, root in enumerate(roots):
        has[row, names.index(vectors.ROOTS[root])] = 1
    has[:1000, [names.index("CCAT"), names.index("MCAT")]] = 1  # two roots: to be left out
    has[1000:2000, [names.index(root) for root in vectors.ROOTS]] = 0  # and none
    has[:, names.index("Z00")] = 1
    often = np.linspace(0.001, 0.03, 3000)  # the later the term, the more documents it is in
    present = rng.random((count, 3000), np.float32) < often
    weights = scipy.sparse.csr_matrix(present * rng.uniform(0.1, 1, 3000))
    # two terms that every document has, and by which it is known: its number, and its root
    known = scipy.sparse.csr_matrix(np.stack([np.arange(1, count + 1) / count, roots + 1.0], 1))
    empty = scipy.sparse.csr_matrix((count, 47_236 - 3002))
    stacked = scipy.sparse.hstack([empty, weights, known], format="csr")
    target = scipy.sparse.csr_matrix(has)
    return SimpleNamespace(data=stacked, target=target, target_names=np.array(names, object))


def fetcher(monkeypatch: pytest.MonkeyPatch, name: str, answer) -> list[dict]:
    """Replace scikit-learn's fetcher; its calls are written down."""
    calls = []

    def fetch(*args, **options):
        calls.append({"args": args, "timeout": socket.getdefaulttimeout(), **options})
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(sklearn.datasets, name, fetch)
    return calls


# HAR


@pytest.fixture(scope="module")
def activities() -> SimpleNamespace:
    return har_bunch()


def test_har_keeps_the_authors_parts_where_their_counts_are_found(monkeypatch, activities, tmp_path):
    calls = fetcher(monkeypatch, "fetch_openml", activities)
    train, test = (data.load("vectors:har", split) for split in ("train", "test"))
    assert len(calls) == 1 and calls[0]["args"] == ("har",) and calls[0]["version"] == 1
    assert calls[0]["data_home"].parent == tmp_path / "data" and calls[0]["timeout"] is not None
    assert not calls[0]["data_home"].exists()
    assert socket.getdefaulttimeout() is None
    assert train.vectors.shape == (7352, 561) and test.vectors.shape == (2947, 561)
    assert train.labels.bincount().tolist() == list(HAR_COUNTS)
    assert test.labels.bincount().tolist() == list(HAR_TEST_COUNTS)
    assert train.class_names[0] == "walking" and train.class_names[5] == "laying"
    rows = (train.vectors[:, 1].double() * 7351).round()
    assert torch.equal(rows, torch.arange(7352).double())
    assert "all 7,352" in train.source and "authors' own parts" in train.source and "real" in train.source
    few = data.load("vectors:har", limit=30)
    assert torch.equal(few.vectors, train.vectors[:30]) and torch.equal(few.labels, train.labels[:30])
    assert "30 of 7,352" in few.source


def test_features_are_rescaled_by_the_training_part_alone(monkeypatch, activities):
    fetcher(monkeypatch, "fetch_openml", activities)
    train, test = (data.load("vectors:har", split).vectors for split in ("train", "test"))
    low, high = activities.data[:7352].min(0), activities.data[:7352].max(0)
    for part, raw in ((train, activities.data[:7352]), (test, activities.data[7352:])):
        assert part.dtype == torch.float32
        for feature in (0, 1, 10, 560):
            expected = (raw[:, feature] - low[feature]) / (high[feature] - low[feature])
            np.testing.assert_allclose(part[:, feature].numpy(), expected, atol=1e-6)
    assert train.min() == 0 and train.max() == 1 and test[:, 1].min() > 1  # rows 7352 on
    assert (train[:, 2] == 0).all() and (test[:, 2] == 0).all()  # constant: 0, not NaN


def test_without_the_authors_counts_parts_are_random_and_say_so(monkeypatch):
    rng = np.random.default_rng(3)
    letters = np.array([chr(65 + n % 26) for n in range(20_000)], object)
    drawn = rng.integers(0, 16, (20_000, 16)).astype(np.float64)
    drawn[:, 0] = [ord(letter) for letter in letters]
    for name, bunch, sizes in (
        ("har", har_bunch(shuffle=True), (7352, 2947)),
        ("letter", SimpleNamespace(data=drawn, target=letters), (16_000, 4_000)),
    ):
        calls = fetcher(monkeypatch, "fetch_openml", bunch)
        train, test = (data.load(f"vectors:{name}", split) for split in ("train", "test"))
        assert len(calls) == 1 and calls[0]["args"] == (name,) and calls[0]["version"] == 1
        assert (len(train), len(test)) == sizes
        assert "drawn at random with seed 0, not the authors' own" in train.source
        last = len(train.class_names) - 1
        for part in (train, test):  # labels follow their rows
            assert torch.equal((part.vectors[:, 0] * last).round().long(), part.labels)


# Reuters


@pytest.fixture(scope="module")
def news() -> SimpleNamespace:
    return reuters_bunch()


def numbers_of(documents: np.ndarray, count: int) -> np.ndarray:
    return np.rint(documents[:, -2] * count).astype(int) - 1


def test_reuters_draws_documents_of_one_root_with_their_labels(monkeypatch, news):
    fetcher(monkeypatch, "fetch_rcv1", news)
    parts = vectors.reuters(Path("nowhere"))
    assert parts.vectors.shape == (10_000, 2000) and parts.is_train.sum() == 8000
    drawn = numbers_of(parts.vectors, news.data.shape[0])
    assert len(set(drawn)) == 10_000
    assert drawn.min() >= 2000  # none with two roots, none without
    assert drawn[:8000].mean() == pytest.approx(drawn[8000:].mean(), rel=0.05)  # not sorted in any way
    assert np.array_equal(parts.labels, np.rint(parts.vectors[:, -1]).astype(int) - 1)
    train = data.load("vectors:reuters")
    assert train.vectors.shape == (8000, 2000) and train.class_names == ("CCAT", "GCAT", "MCAT", "ECAT")
    assert train.labels.tolist() == parts.labels[:8000].tolist() and "at random with seed 0" in train.source
    again = vectors.reuters(Path("nowhere"))
    assert np.array_equal(again.vectors, parts.vectors) and np.array_equal(again.labels, parts.labels)


def test_reuters_keeps_the_terms_of_most_training_documents(monkeypatch, news):
    fetcher(monkeypatch, "fetch_rcv1", news)
    parts = vectors.reuters(Path("nowhere"))
    documents = news.data[numbers_of(parts.vectors, news.data.shape[0])][:, -3002:].toarray()
    counts = (documents[:8000] > 0).sum(0)  # all other terms are in no document
    kept = [term for term in range(3002) if (counts > counts[term]).sum() < 2000]
    kept = sorted(sorted(kept, key=lambda term: (-counts[term], term))[:2000])
    np.testing.assert_array_equal(parts.vectors, documents[:, kept])
    whole = (documents > 0).sum(0)
    assert set(kept) != set(np.argsort(-whole, kind="stable")[:2000])  # the test part has no say


# Inside scikit-learn


@pytest.mark.parametrize(
    ("name", "rows", "columns"), [("breast-cancer", 569, 30), ("wine", 178, 13), ("iris", 150, 4)]
)
def test_a_table_inside_scikit_learn_is_divided_by_class_and_scaled_by_its_training_part(name, rows, columns):
    train, test = (data.load(f"vectors:{name}", split) for split in ("train", "test"))
    assert len(train) + len(test) == rows and train.vectors.shape[1] == columns
    assert train.vectors.amin() == 0 and train.vectors.amax() == 1
    share = test.labels.bincount() / (train.labels.bincount() + test.labels.bincount())
    assert bool(((share - 0.25).abs() < 0.02).all())
    assert "seed 0" in train.source and "real" in train.source
    parts = vectors.table(name)
    np.testing.assert_array_equal(train.labels, parts.labels[parts.is_train])
    scaled = vectors.rescaled(parts.vectors, parts.is_train)
    np.testing.assert_array_equal(test.vectors, scaled[~parts.is_train])
    assert len(data.load(f"vectors:{name}", limit=7)) == 7


# Without a network, and with what came of it


def one_line(answer: pytest.ExceptionInfo) -> str:
    said = str(answer.value)
    assert "\n" not in said and "To do:" in said and "CLUTILS_DATA" in said
    return said


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        (urllib.error.URLError(OSError("Name or service not known")), "Name or service not known"),
        (TimeoutError("timed out"), "timed out"),
        (ValueError("OpenML is\n  under maintenance"), "OpenML is under maintenance"),
        (EOFError(), "EOFError"),
    ],
)
@pytest.mark.parametrize(("name", "function"), [("har", "fetch_openml"), ("reuters", "fetch_rcv1")])
def test_a_failed_fetch_is_one_line_with_what_to_do(monkeypatch, name, function, trouble, reason):
    fetcher(monkeypatch, function, trouble)
    with pytest.raises(data.Unavailable, match=rf"{name} is not, or not whole, in .*{reason}") as answer:
        data.load(f"vectors:{name}")
    assert f"vectors/{name}.npz" in one_line(answer)
    assert socket.getdefaulttimeout() is None  # others' sockets are as they were


def test_what_never_answers_is_given_up_before_scikit_learn_waits(monkeypatch):
    calls = fetcher(monkeypatch, "fetch_openml", AssertionError("it must not be asked"))
    monkeypatch.setattr(vectors, "reach", downloads.reach)
    monkeypatch.setattr(downloads, "PATIENCE", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections and says nothing
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        slow = vectors.SETS | {"har": replace(vectors.SETS["har"], url=url)}
        monkeypatch.setattr(vectors, "SETS", slow)
        with pytest.raises(data.Unavailable, match="timed out") as answer:
            data.load("vectors:har")
    one_line(answer)
    assert calls == []


def test_what_was_made_is_listed_needs_no_network_and_is_mended_where_it_is_damaged(monkeypatch, activities):
    calls = fetcher(monkeypatch, "fetch_openml", activities)
    with pytest.raises(data.Unavailable, match="switched off") as answer:
        data.load("vectors:har", download=False)
    one_line(answer)
    assert calls == []
    online = data.load("vectors:har", limit=5)
    (har,) = data.on_disk()
    assert har.name == "vectors:har" and har.complete and har.bytes == har.path.stat().st_size
    assert torch.equal(data.load("vectors:har", limit=5, download=False).vectors, online.vectors)
    har.path.write_bytes(har.path.read_bytes()[:5000])
    assert len(data.load("vectors:har")) == 7352 and len(calls) == 2
    assert [file.name for file in har.path.parent.iterdir()] == ["har.npz"]  # no halves beside it


def test_scikit_learn_opens_no_pickle_that_lies_in_the_data_directory(monkeypatch, tmp_path):
    """As `fetch_rcv1`, which opens the pickles that are in its home."""
    sprung = tmp_path / "sprung"
    planted = tmp_path / "data" / "scikit-learn" / "RCV1" / "samples.pkl"
    planted.parent.mkdir(parents=True)
    planted.write_bytes(pickle.dumps(Trap(sprung)))

    def fetch(data_home):
        for file in Path(data_home).rglob("*.pkl"):
            pickle.loads(file.read_bytes())
        return reuters_bunch()

    monkeypatch.setattr(sklearn.datasets, "fetch_rcv1", fetch)
    assert len(data.load("vectors:reuters")) == 8000 and not sprung.exists()


def test_what_is_not_har_or_rcv1_is_not_taken_for_it(monkeypatch, activities):
    few, one_class = activities.data[:50], np.full(10_299, "1")
    for name, function, came, reason in (
        ("har", "fetch_openml", SimpleNamespace(data=few, target=activities.target[:50]), r"\(50, 561\)"),
        ("har", "fetch_openml", SimpleNamespace(data=activities.data, target=one_class), "1 classes"),
        ("reuters", "fetch_rcv1", reuters_bunch(3000), "1,000 documents of one root category, not 10,000"),
    ):
        fetcher(monkeypatch, function, came)
        with pytest.raises(data.Unavailable, match=reason) as answer:
            data.load(f"vectors:{name}")
        one_line(answer)


# One's own arrays


def test_vector_set_takes_what_readers_have():
    numbers = [[1, 2, 3], [4, 5, 6]]
    for given in (
        numbers,
        np.array(numbers),
        torch.tensor(numbers),
        torch.tensor(numbers).float().requires_grad_(),
    ):
        made = data.vector_set(given)
        assert (
            made.vectors.tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
            and made.vectors.dtype == torch.float32
        )
        assert made.labels.tolist() == [-1, -1] and made.class_names == ()
    mine = np.ones((2, 3), np.float32)
    made = data.vector_set(mine)
    mine[:] = 7
    assert (made.vectors == 1).all()  # a set does not change with the array it was made of
    assert data.vector_set(numbers, ["b", "a"]).labels.tolist() == [1, 0]
    assert data.vector_set(numbers, ["b", "a"]).class_names == ("a", "b")
    assert data.vector_set(numbers, ["b", "a"], class_names=["b", "a", "c"]).labels.tolist() == [0, 1]
    assert data.vector_set(numbers, torch.tensor([2, -1])).class_names == ("0", "1", "2")
    assert data.vector_set(numbers, [0, 1], ["no", "yes"], source="mine").source == "mine"
    assert data.vector_set([[0.5, 0], [7, 1]] * 2).source.endswith("holds labels: give it as labels")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, 2.0],), r"vectors are float64 \(2,\)"),
        ((np.zeros((0, 3)),), r"\(0, 3\)"),
        (([[1.0], [2.0, 3.0]],), "no array"),
        (([["a"]],), "<U1"),
        ((np.array([[1.0, 2.0], [3.0, np.nan]]),), r"row 1, column 1 of \(2, 2\) is nan"),
        ((np.array([[1e39]]),), r"row 0, column 0 .* is 1e\+39"),
        (([[1.0], [2.0]], [0]), r"labels are \(1,\) for 2 vectors"),
        (([[1.0], [2.0]], [0, 20261122]), "labels go up to 20,261,122, but must stay below 1,000,000"),
        (([[1.0], [2.0]], [0.5, 1]), "labels hold 0.5, but must be classes: whole numbers or names"),
        (([[1.0], [2.0]], ["a", "x"], ["a", "b"]), "'x'.*none of the classes a, b"),
        (([[1.0], [2.0]], [0, 3], ["a", "b"]), "from 0 to 3, but there are 2"),
    ],
)
def test_vector_set_says_what_came_in(arguments, message):
    with pytest.raises(ValueError, match=message):
        data.vector_set(*arguments)


@pytest.fixture
def numbers() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(6, 4))


def test_files_give_back_the_numbers_and_classes_put_in(tmp_path, numbers):
    np.save(tmp_path / "a.npy", numbers)
    np.savez(tmp_path / "b.npz", vectors=numbers, labels=np.array([0, 1, 2, 0, 1, 2]))
    np.savez(tmp_path / "c.npz", vectors=numbers, labels=np.array(list("xyzxyz")))
    np.savetxt(tmp_path / "d.csv", numbers, delimiter=",")
    rows = [",".join(map(repr, map(float, row))) for row in numbers]
    titled = "a,b,c,d,Label\n" + "\n".join(f"{row},{name}" for row, name in zip(rows, "xyzxyz", strict=True))
    (tmp_path / "e.csv").write_text(titled)
    numbered = "label,a,b,c,d\n" + "\n".join(f"{n % 3},{row}" for n, row in enumerate(rows))
    (tmp_path / "f.CSV").write_text(numbered, encoding="utf-8-sig")
    labels = {"a.npy": None, "b.npz": "012", "c.npz": "xyz", "d.csv": None, "e.csv": "xyz", "f.CSV": "012"}
    for name, classes in labels.items():
        found = data.load(f"vectors:array:{tmp_path / name}")
        np.testing.assert_allclose(found.vectors.numpy(), numbers, rtol=1e-6)
        assert found.class_names == tuple(classes or ())
        assert found.labels.tolist() == ([0, 1, 2, 0, 1, 2] if classes else [-1] * 6)
        assert name in found.source and "6 vectors of 4 numbers" in found.source
    few = data.load(f"vectors:array:{tmp_path / 'b.npz'}", limit=2)
    assert few.vectors.shape == (2, 4) and "2 of 6" in few.source and len(few.class_names) == 3


class Trap:
    """Opening its pickle would create a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


def test_pickled_objects_are_refused_and_not_run(tmp_path):
    sprung = tmp_path / "sprung"
    objects = np.empty((2, 2), object)
    objects[:] = Trap(sprung)
    np.save(tmp_path / "objects.npy", objects)
    np.savez(tmp_path / "objects.npz", vectors=objects)
    for name in ("objects.npy", "objects.npz"):
        with pytest.raises(ValueError, match=f"{name} can't be read"):
            data.load(f"vectors:array:{tmp_path / name}")
    assert not sprung.exists()


def written(path: Path, text: str) -> str:
    path.write_text(text, "utf-8")
    return f"vectors:array:{path}"


def header(text: str) -> bytes:
    """An .npy of this header, and few bytes behind it."""
    return b"\x93NUMPY\x01\x00" + (len(text) + 1).to_bytes(2, "little") + text.encode() + b"\n" + bytes(64)


TWELVE = "".join(f"{row} %,{row},{row % 2}\n" for row in range(12))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.npy", np.zeros(5), r"vectors are float64 \(5,\); numbers \(N, D\)"),
        ("a.npy", b"no array at all", "can't be read"),
        (
            "a.npy",
            header("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000, 1000000)}"),
            "be read: ",
        ),
        ("a.npy", header("(" * 500), "can't be read: "),
        ("a.npy", header("{'descr': '<f4'}"), "can't be read: "),
        ("a.npz", {"z": np.zeros((2, 2))}, "holds z; one array of vectors"),
        (
            "a.npz",
            {"X": np.ones((3, 1)), "vectors": np.ones((3, 1))},
            "holds X, vectors; one array of vectors",
        ),
        ("a.npz", {"vectors": np.zeros((2, 2)), "labels": np.zeros(3, int)}, r"labels are \(3,\) for 2"),
        ("a.npz", b"PK\x03\x04 cut short", "can't be read"),
        ("a.csv", b"a,b\n", "no row of numbers"),
        ("a.csv", b"1,2\n3,4\n5,6,7\n", r"pandas\.read_csv: .*Expected 2 fields in line 3, saw 3"),
        ("a.csv", b"a,b\n1,2,3\n4,5,6\n", r"pandas\.read_csv: Length of header .* does not match"),
        ("a.csv", b"a b c\n1 2\n4 5 6\n", "the row '1 2' has fewer columns than 3"),
        ("a.csv", b"", r"pandas\.read_csv: No columns to parse"),
        ("a.csv", b"1,2\n3,x\n", "column '2' holds 'x' in row 2, but numbers in other rows"),
        ("a.csv", b"1,2\n" + b"3" * 140_000 + b",4\n", "are no rows of a table: field larger than"),
        ("a.csv", b"a,b\n1,\n", "column 'b' has no value in 1 of 1 rows: leave it out"),
        ("a.csv", "a,b\n1,2\n".encode("utf-16"), "is UTF-16, as Excel's .*save it as 'CSV UTF-8'"),
        ("a.csv", "a,größe\n1,2\n".encode("cp1252"), "Windows-1252, as Excel's .*save it as 'CSV UTF-8'"),
        ("a.csv", b"PK\x03\x04" + bytes(50), "is a workbook or an archive, not text"),
        ("a.parquet", b"PAR1", r"\.parquet; one of \.npy.* takes a DataFrame, as of pandas\.read_parquet"),
        (
            "a.csv?label=",
            b"b;a\n1;1,5\n2;2,25\n3;3\n",
            r"column 'a' holds '1,5', .*pass decimal=\",\", as in .*\?dec",
        ),
        ("a.csv?label=", b"b;a\n1;1.234,5\n2;2.000,0\n", "column 'a' holds '1.234,5'.*thousands="),
        ("a.csv", b'a,b,label\n"1,100",5,x\n"2,000",7,y\n', 'thousands=","'),
        ("a.csv?decimal=,", b"a;b\n" + b"1.100;0,5\n2.000;0,7\n" * 3, r"'1\.100'.*thousands=\"\.\""),
        (
            "a.csv?label=",
            b"b,a\n1,Training\n2,PublicTest\n",
            "column 'a' holds PublicTest, Training, the part",
        ),
        (
            "a.csv?label=",
            b"b,a\n1,train\n2,test\n",
            "column 'a' holds test, train, the part that a row belongs to",
        ),
        ("a.csv", b"a,b,label\n" + b"1,2,train\n3,4,test\n" * 3, "'label' holds test, train, the part"),
        (
            "a.csv",
            b"b,a\n1,red\n2,blue\n3,red\n",
            "'a' holds 'red' in row 1: if these are the labels, .*label=a",
        ),
        ("a.csv?label=", b"b,a\n1,2020-01-02\n2,1\n3,2\n", "'a' holds '2020-01-02' in row 1, but numbers in"),
        ("a.csv?label=", b"b,a\n1,1.0\n2,inf\n3,2.0\n", "column 'a' holds inf in row 2"),
        ("a.csv?label=1", b"kind,1,2\na,5,6\nb,8,9\n", "may name the columns or be a row"),
        ("a.csv?label=", b"country,2019,2020\nFrance,1,2\nItaly,3,4\n", "may name the columns or be a row"),
        ("a.csv", f"a,b,label\n{TWELVE}".encode(), "12 different texts"),
        (
            "a.csv",
            b"kind,x,y\np,1,4\nq,2,5\np,3,6\n",
            r"column 'kind' holds 'p' in row 1.*a\.csv\?label=kind",
        ),
        ("a.csv?label=kin", b"kind,x\np,1\nq,2\n", "no column 'kin'; did you mean 'kind'"),
        (
            "a.csv",
            b"a,target,species\n1,0,0\n2,1,1\n",
            r"'target' and 'species' may be the labels.*\?label=target",
        ),
        ("a.csv", b"a,target\n1,0.5\n2,0.7\n", r"'target' was taken .*, but holds 0.5, .*\?label= takes"),
        ("a.csv?test=some", b"a,b\n1,2\n", "test is 'some', but must be a share"),
    ],
)
def test_files_that_hold_no_vectors_say_what_they_hold(tmp_path, name, content, message):
    file = tmp_path / name.partition("?")[0]
    if isinstance(content, bytes):
        file.write_bytes(content)
    elif isinstance(content, dict):
        np.savez(file, **content)
    else:
        np.save(file, content)
    with pytest.raises(ValueError, match=message) as answer:
        data.load(f"vectors:array:{tmp_path / name}")
    assert "\n" not in str(answer.value)


FIVE = "".join(f"{5 * row % 12},0.{row},{row % 2}\n" for row in range(12))
LONG, LEFT = ",long,wide,{}\n0,0.5,1,1\n1,1.5,2,0\n2,2.5,3,2\n", "left out: a column without a name"
ACIDS = ",acid,id,Outcome\n4,4,0.5,0\n1,2,0.7,1\n3,3,0.1,0\n"
CODES = "0.5,7,1\n1.5,3,0\n2.5,5,1\n3.5,1,0\n"


@pytest.mark.parametrize(
    ("text", "asked", "shape", "labels", "said"),
    [
        *(
            (LONG.format(title), "", (3, 2), [1, 0, 2], f"long, wide; labels: {title!r}; {LEFT}")
            for title in ("label", "Target", "y", "class_label")
        ),
        *(
            (f"{title}{ACIDS}", "", (3, 2), [0, 1, 0], "columns: acid, id; labels: 'Outcome'; left out")
            for title in ("PatientId", "image_id", "ID", "Unnamed: 0.1", "level_0")
        ),
        (f"a,b,quality\n{CODES}", "", (4, 3), None, "if 'quality', a few whole numbers, holds labels: "),
        (CODES, "", (4, 3), None, "if '3', a few whole numbers, holds labels: "),
        ("age,n,sick\n20,105,0\n31,9,1\n47,20,0\n55,31,1\n", "", (4, 3), None, "if 'sick', a few whole"),
        (f"a,b,quality\n{CODES}", "?label=", (4, 3), None, "; no labels"),
        (
            "a,kind,name\n" + "1,0,p\n2,1,q\n" * 3,
            "?label=name",
            (6, 2),
            [0, 1] * 3,
            "'kind' tells the labels",
        ),
        (f"sample,a,label\n{FIVE},,\n,,\n", "", (12, 2), [0, 1] * 6, "'sample' counts the rows"),
        ("kind,x,y\np,1,4\nq,2,5\n", "?label=kind", (2, 2), [0, 1], "columns: x, y; labels: 'kind'"),
        ("0.5,1\n1,0\n2,1\n", "?label=2", (3, 1), [1, 0, 1], "columns: 1; labels: '2'"),
        ("a,target\n1,0.5\n2,0.7\n", "?label=", (2, 2), None, "columns: a, target"),
        ("0,1,2\n5,5,5\n5,5,5\n", "", (2, 3), None, ""),  # pandas' names of an array's columns
        ("5.1,3.5,setosa\n4.9,3.0,virginica\n", "?label=3", (2, 2), [0, 1], ""),  # UCI's iris.data: no names
        ("cat,0.5,3\ndog,0.7,1\ncat,0.9,3\n", "?label=3", (3, 3), [3, 1, 3], ""),  # 3 is a place, no title
        ("kind,2019,2020\np,1,0\nq,3,1\n", "?label=2020", (2, 3), [0, 1], "columns: kind, 2019; labels"),
        ("a, b, label\n1, 2, None\n3, 4, NA\n5, 6, z\n", "", (3, 2), [1, 0, 2], "a, b; labels: 'label'"),
        ("39,State-gov,no\n38,Private,yes\n", "?label=3", (2, 3), [0, 1], ""),  # adult.data: no names, either
        ("400.5,401.5,label\n1,2,a\n3,4,b\n", "", (2, 2), [0, 1], ""),  # a spectrum's wavelengths
        ("id,400.5,401.5\n1,2,3\n2,5,6\n", "", (2, 2), None, "row numbers, 'id'"),
        ("a,y\n1,-1\n2,1\n3,-1\n", "", (3, 1), [0, 1, 0], "labels -1 and 1 are the classes 0 and 1"),
        ("a,label\n1,p\n2,\n3,q\n", "", (3, 1), [0, -1, 1], "1 have no label"),
        *(
            (f"a,label\n1,0\n2,{gone}\n3,1\n", "", (3, 1), [0, -1, 1], "1 have no label")
            for gone in ("", "NA", "?", -100)
        ),
    ],
)
def test_a_table_s_columns_are_labels_features_or_left_out_and_said(
    tmp_path, text, asked, shape, labels, said
):
    found = data.load(written(tmp_path / "a.csv", text) + asked)
    assert found.vectors.shape == shape and found.labels.tolist() == (labels or [-1] * shape[0])
    assert said in found.source and ("no label" in found.source) == (not labels or -1 in labels)


def test_an_archive_s_arrays_are_found_by_usual_names_and_the_others_are_said(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, X=np.ones((3, 1)), Target=np.array([0, 9, 1]), fold=np.zeros(3))
    found = data.load(f"vectors:array:{path}")
    assert found.labels.tolist() == [0, 9, 1]
    assert found.source.endswith("labels: 'Target'; left out: 'fold'; 7 of 10 classes are empty")


@pytest.mark.parametrize(
    ("labels", "codes", "names"),
    [
        ([-100, 3, 0], [-1, 3, 0], tuple("0123")),
        ([-1, 1, 1], [0, 1, 1], ("-1", "1")),
        ([1, np.nan, 0], [1, -1, 0], ("0", "1")),
        (np.array(["b", None, "a"], object), [1, -1, 0], ("a", "b")),
        (pd.Series(["b", "a", "b"], index=[5, 6, 7]), [1, 0, 1], ("a", "b")),
    ],
)
def test_labels_as_users_hold_them_are_codes_and_what_is_missing_is_none(labels, codes, names):
    made = data.vector_set([[1.0]] * 3, labels)
    assert made.labels.tolist() == codes and made.class_names == names


def test_labels_of_one_column_a_class_or_in_another_order_are_refused_beside_a_dataframe_too():
    frame = pd.DataFrame({"a": [1.0, 2.0]})
    with pytest.raises(ValueError, match="argmax"):
        data.vector_set(frame, np.eye(2))
    for index in ([1, 0], ["1", "0"]):
        with pytest.raises(ValueError, match=r"in another order: labels\.loc\[table\.index\]"):
            data.vector_set(frame, pd.Series([0, 1], index=index))


ROWS = """size;colour;glad;age;label
1,5;red;true;3;a
2,5;blue;false;;b
-0,5;red;true;5;a
1,0;;false;4;b
"""


@pytest.mark.parametrize("mark", [";", "\t"])
def test_categories_missing_values_and_decimal_commas_become_columns_that_source_names(tmp_path, mark):
    found = data.load(written(tmp_path / "a.csv", ROWS.replace(";", mark)) + "?decimal=,")
    assert found.columns == (
        *("size", "colour = blue", "colour = red", "colour = missing"),
        *("glad", "age", "age is missing"),
    )
    assert found.groups == (0, 1, 1, 1, 2, 3, 3)
    assert found.vectors.tolist() == [
        [1.5, 0, 1, 0, 1, 3, 0],
        [2.5, 1, 0, 0, 0, 4, 1],
        [-0.5, 0, 1, 0, 1, 5, 0],
        [1.0, 0, 0, 1, 0, 4, 0],
    ]
    assert found.labels.tolist() == [0, 1, 0, 1]
    for said in ("'colour' is a category of 2, missing in 1 rows", "'age' has no value in 1 of 4 rows"):
        assert said in found.source


def test_a_test_part_is_apart_and_scaled_by_the_training_part(tmp_path):
    rows = "".join(f"{k * k},{'ab'[k % 2]},{k % 2}\n" for k in range(40))
    name = written(tmp_path / "a.csv", "n,kind,y\n" + rows)
    train, test = (data.load(f"{name}?label=y&test=0.25", split) for split in ("train", "test"))
    assert (len(train), len(test)) == (30, 10) and test.labels.bincount().tolist() == [5, 5]
    values = torch.arange(40.0).square()
    assert train.vectors[:, 0].mean().abs() < 1e-6
    assert train.vectors[:, 0].std(correction=0) == pytest.approx(1)
    both = torch.cat([train.vectors, test.vectors])
    kept = data.load(f"{name}?label=y").vectors[:, 0]
    assert sorted(kept.tolist()) == values.tolist()
    line = torch.stack([both[:, 0], torch.ones(40)], dim=1)
    raw = torch.linalg.lstsq(line, line[:, :1]).solution  # one scale for both parts
    assert raw[0] == pytest.approx(1) and both[:, 1:].unique().tolist() == [0, 1]
    assert "split test" in test.source and "in the training part" in test.source
    with pytest.raises(ValueError, match="no split 'test', only 'train'"):
        data.load(f"{name}?label=y", "test")


def test_a_test_part_without_a_row_is_refused_and_labels_of_a_frame_are_said_by_argument():
    frame = pd.DataFrame({"a": [1.0, 2, 3], "y": ["p", "q", "p"]})
    with pytest.raises(ValueError, match=r"test is 0\.25: train_test_split: The least populated class"):
        data.vector_set(frame, test=0.25)
    with pytest.raises(
        ValueError, match=r"holds 0\.5, which is no class: vector_set\(\.\.\., label=''\) takes"
    ):
        data.vector_set(frame.assign(y=0.5))


def test_a_dataframe_is_a_table_as_its_file_is(tmp_path):
    frame = pd.DataFrame(
        {
            "n": [1.5, None, 3.0],
            "kind": pd.Categorical(["p", "q", "p"]),
            "ok": [True, False, True],
            "y": [1, 0, 1],
        }
    )
    made = data.vector_set(frame)
    frame.to_csv(tmp_path / "a.csv", index=False)
    read = data.load(f"vectors:array:{tmp_path / 'a.csv'}")
    assert torch.equal(made.vectors, read.vectors) and torch.equal(made.labels, read.labels)
    assert made.columns == read.columns and made.groups == read.groups == (0, 0, 1, 1, 2)
    other = data.vector_set(frame, label="kind")
    assert other.class_names == ("p", "q") and other.columns == ("n", "n is missing", "ok", "y")
    with pytest.raises(ValueError, match="only a DataFrame has columns of that name"):
        data.vector_set([[1.0]], label="y")
    with pytest.raises(ValueError, match=r"data is of type DataFrame.*data\.vector_set\(table\) makes one"):
        training.Run(data=pd.concat([frame] * 9))


def test_a_column_that_pandas_calls_a_category_is_one_where_it_holds_numbers():
    frame = pd.DataFrame({"a": [1.0, 2, 3, 4], "code": [7, 10, 7, None], "y": [0, 1, 0, 1]})
    assert data.vector_set(frame, label="y").columns == ("a", "code", "code is missing")
    frame["code"] = pd.Categorical([7, 10, 7, None])
    found = data.vector_set(frame, label="y")
    assert found.columns == ("a", "code = 10", "code = 7", "code = missing") and found.groups == (0, 1, 1, 1)
    assert found.vectors[:, 1:].tolist() == [[0, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]


def test_a_run_whose_table_is_read_otherwise_now_names_the_version_that_reads_it(tmp_path):
    name = written(tmp_path / "a.csv", "".join(f"{k}.5,{k % 7}\n" for k in range(20)))
    run = training.Run(data=name, steps=1, batch_size=8)
    run.save(tmp_path / "run.pt")
    for text in ("1.5,2\n" * 20, "1;5,2\n" * 20, ""):
        written(tmp_path / "a.csv", text)
        with pytest.raises(ValueError, match="; commit 4d9e61c reads vectors:array:"):
            training.resume(tmp_path / "run.pt")


def test_columns_of_one_category_are_corrupted_together_also_after_resuming(tmp_path):
    rows = "".join(f"{k},{'abc'[k % 3]},{k % 2}\n" for k in range(60))
    name = written(tmp_path / "a.csv", "n,kind,y\n" + rows)
    found = data.load(name)
    run = training.Run(data=name, steps=2, batch_size=30)
    assert run.augmentation == views.vectors.Corruption(groups=(0, 1, 1, 1))
    seen = run.augmentation(found.vectors, torch.Generator().manual_seed(0))
    assert (seen[:, 1:].sum(dim=1) == 1).all() and not torch.equal(seen, found.vectors)
    apart = views.vectors.Corruption()(found.vectors, torch.Generator().manual_seed(0))
    assert (apart[:, 1:].sum(dim=1) != 1).any() and torch.equal(apart[:, 0], seen[:, 0])
    run.step()
    run.save(tmp_path / "run.pt")
    assert training.resume(tmp_path / "run.pt").augmentation == run.augmentation
    assert views.name_of(views.settings_of(run.augmentation)) == "corruption"
    with pytest.raises(ValueError, match=r"groups are of 4 columns, but what came in is \(3, 2\)"):
        run.augmentation(torch.ones(3, 2))
