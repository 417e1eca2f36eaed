"""Published sets: their files' layout, and downloads that break, lie, stall or never start.

The archives are small ones of the true layout, written here and served by a local server.
"""

import dataclasses
import gc
import gzip
import hashlib
import http.server
import io
import pickle
import shutil
import socket
import tarfile
import threading
import time
import urllib.error
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
import torchvision

from clutils import data
from clutils.data import downloads, published

PICTURE = 3 * 96 * 96


def md5(content: bytes) -> str:
    return hashlib.md5(content).hexdigest()


def tar_gz(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


class Server:
    """A local web server whose manners a test can spoil."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.asked: list[tuple[str, str | None]] = []
        self.cut: list[int] = []  # the next answers stop after so many bytes
        self.ranges = True
        self.status = 200
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                wanted = self.headers["Range"]
                server.asked.append((self.path, wanted))
                content = server.files.get(self.path.lstrip("/"), b"")
                start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and server.ranges else 0
                status = 206 if start else server.status
                if start and start >= len(content):
                    status = 416
                self.send_response(status)
                self.send_header("Content-Length", str(len(content) - start if status < 300 else 0))
                self.end_headers()
                if status < 300:
                    end = server.cut.pop(0) + start if server.cut else len(content)
                    self.wfile.write(content[start:end])

            def log_message(self, *_: object) -> None:
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.http.server_port}"


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.http.serve_forever, args=(0.02,))
    thread.start()
    yield server
    server.http.shutdown()
    server.http.server_close()
    thread.join()


def altered(monkeypatch: pytest.MonkeyPatch, name: str, server: Server, archive: bytes) -> type:
    """Let torchvision's class find this archive on the server; gives the class."""
    theirs = published.SETS[name].theirs
    server.files[theirs.filename] = archive
    monkeypatch.setattr(theirs, "url", f"{server.address}/{theirs.filename}")
    monkeypatch.setattr(theirs, "tgz_md5", md5(archive))
    monkeypatch.setitem(published.SETS, name, dataclasses.replace(published.SETS[name], size=len(archive)))
    return theirs


def cifar(monkeypatch: pytest.MonkeyPatch, name: str, server: Server, files: dict[str, bytes]) -> None:
    """Serve these batches, and as the last of them the table of classes, for CIFAR-10 or CIFAR-100."""
    folder = published.SETS[name].folder
    theirs = altered(
        monkeypatch, name, server, tar_gz({f"{folder}/{file}": content for file, content in files.items()})
    )
    *train, test, meta = [[file, md5(content)] for file, content in files.items()]
    monkeypatch.setattr(theirs, "train_list", train)
    monkeypatch.setattr(theirs, "test_list", [test])
    monkeypatch.setitem(theirs.meta, "md5", meta[1])


@pytest.fixture
def cifar10(server: Server, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """CIFAR-10 with four images a batch; gives its files."""
    draw = np.random.default_rng(0)
    files = {
        batch: pickle.dumps(
            {"data": draw.integers(0, 256, (4, 3072), np.uint8), "labels": draw.integers(0, 10, 4).tolist()}
        )
        for batch in [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]
    }
    files["batches.meta"] = pickle.dumps({"label_names": [f"class {n}" for n in range(10)]})
    cifar(monkeypatch, "cifar10", server, files)
    return files


@pytest.fixture
def stl10(server: Server, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """STL-10 with 3 + 2 labelled and 4 unlabelled images; gives its files."""
    draw, counts = np.random.default_rng(1), {"train": 3, "test": 2, "unlabeled": 4}
    files = {}
    for part, count in counts.items():
        files[f"stl10_binary/{part}_X.bin"] = draw.integers(0, 256, count * PICTURE, np.uint8).tobytes()
        if part != "unlabeled":
            files[f"stl10_binary/{part}_y.bin"] = draw.integers(1, 11, count, np.uint8).tobytes()
    altered(monkeypatch, "stl10", server, tar_gz(files))
    monkeypatch.setattr(published, "STL10_COUNTS", counts)
    return files


@pytest.fixture
def sets(cifar10: object, stl10: object, fashion: object) -> None:
    """All three, small, on the server."""


@pytest.fixture
def fashion(server: Server, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Fashion-MNIST with six and three images; gives its unpacked files."""
    theirs, draw, files, resources = torchvision.datasets.FashionMNIST, np.random.default_rng(4), {}, []
    for name, _ in theirs.resources:
        count, images = 6 if "train" in name else 3, "images" in name
        head = [0x803, count, 28, 28] if images else [0x801, count]
        body = draw.integers(0, 256 if images else 10, count * (784 if images else 1), np.uint8)
        files[name.removesuffix(".gz")] = content = np.array(head, ">i4").tobytes() + body.tobytes()
        server.files[name] = packed = gzip.compress(content)
        resources.append((name, md5(packed)))
    monkeypatch.setattr(theirs, "resources", resources)
    monkeypatch.setattr(theirs, "mirrors", [f"{server.address}/"])
    return files


# Layouts


def test_cifar10_has_each_batch_in_its_order(cifar10, tmp_path):
    batches = [pickle.loads(content) for content in cifar10.values()]
    for split, parts in (("train", batches[:5]), ("test", batches[5:6])):
        found = data.load("cifar10", split, root=tmp_path)
        expected = np.concatenate([part["data"] for part in parts]).reshape(-1, 3, 32, 32)
        assert found.images.dtype == torch.uint8 and np.array_equal(found.images, expected)
        assert found.labels.tolist() == [label for part in parts for label in part["labels"]]
        assert found.class_names[9] == "class 9" and found.masks is None
    assert len(data.load("cifar10", limit=7, root=tmp_path)) == 7
    assert "7 of 20 images" in data.load("cifar10", limit=7, root=tmp_path).source


def test_cifar100_gives_the_fine_labels(server, monkeypatch, tmp_path):
    draw = np.random.default_rng(2)
    batches = {
        part: {
            "data": draw.integers(0, 256, (5, 3072), np.uint8),
            "fine_labels": draw.integers(0, 100, 5).tolist(),
            "coarse_labels": draw.integers(0, 20, 5).tolist(),
        }
        for part in ("train", "test")
    }
    names = [f"fine {i}" for i in range(100)]
    batches["meta"] = {"fine_label_names": names, "coarse_label_names": ["coarse"]}
    files = {part: pickle.dumps(batch) for part, batch in batches.items()}
    cifar(monkeypatch, "cifar100", server, files)
    found = data.load("cifar100", root=tmp_path)
    assert found.labels.tolist() == batches["train"]["fine_labels"] and list(found.class_names) == names
    assert np.array_equal(found.images[4, 2, 31], batches["train"]["data"][4, -32:])


def test_stl10_pictures_are_stored_column_by_column(stl10, tmp_path):
    for split, count in (("train", 3), ("test", 2), ("unlabeled", 4)):
        found = data.load("stl10", split, root=tmp_path)
        stored = stl10[f"stl10_binary/{split}_X.bin"]
        assert found.images.shape == (count, 3, 96, 96)
        for n, channel, row, column in np.random.default_rng(3).integers(0, (count, 3, 96, 96), (200, 4)):
            byte = stored[n * PICTURE + channel * 96 * 96 + column * 96 + row]
            assert found.images[n, channel, row, column] == byte
        labels = stl10.get(f"stl10_binary/{split}_y.bin", bytes(count))
        assert found.labels.tolist() == [label - 1 for label in labels]
        assert found.class_names[0] == "airplane" and len(found.class_names) == 10


def test_stl10_unpacks_only_the_split_asked_for(stl10, server, tmp_path):
    data.load("stl10", "test", root=tmp_path)
    unpacked = tmp_path / "stl10_binary"
    assert {file.name for file in unpacked.iterdir()} == {"test_X.bin", "test_y.bin"}
    data.load("stl10", "unlabeled", root=tmp_path)
    assert len(server.asked) == 1  # the archive was still there


def test_writing_to_stl10_pictures_never_reaches_the_file(stl10, tmp_path):
    found = data.load("stl10", root=tmp_path)
    found.images[:] = 7
    assert (found.images == 7).all()
    assert (tmp_path / "stl10_binary" / "train_X.bin").read_bytes() == stl10["stl10_binary/train_X.bin"]
    assert not (data.load("stl10", root=tmp_path).images == 7).all()


def test_unlabeled_stl10_needs_no_memory(tmp_path):
    statistics = Path("/proc/self/statm")
    if not statistics.exists():
        pytest.skip("the memory of a process is read from /proc")

    def resident() -> int:
        return int(statistics.read_text().split()[1]) * 4096

    (tmp_path / "stl10_binary").mkdir()
    with open(tmp_path / "stl10_binary" / "unlabeled_X.bin", "wb") as file:
        file.seek(99_999 * PICTURE)
        file.write(bytes(range(256)) * (PICTURE // 256))  # a hole of 2.7 GB and one image
    before, start = resident(), time.perf_counter()
    found = data.load("stl10", "unlabeled", root=tmp_path, download=False)
    last = found.subset([99_999, 0])
    assert time.perf_counter() - start < 5
    assert resident() - before < 50e6
    assert found.images.shape == (100_000, 3, 96, 96) and found.labels.unique().tolist() == [-1]
    assert last.images[0, 0, :, 0].tolist() == list(range(96)) and (last.images[1] == 0).all()


def test_fashion_mnist_is_read_and_half_a_file_is_mended(fashion, server, tmp_path):
    for split, prefix in (("train", "train"), ("test", "t10k")):
        found = data.load("fashion-mnist", split, root=tmp_path)
        pixels = np.frombuffer(fashion[f"{prefix}-images-idx3-ubyte"][16:], np.uint8)
        assert np.array_equal(found.images, pixels.reshape(-1, 1, 28, 28))
        assert found.labels.tolist() == list(fashion[f"{prefix}-labels-idx1-ubyte"][8:])
        assert found.labels.dtype == torch.int64 and found.class_names[9] == "Ankle boot"
    asked = len(server.asked)
    raw = tmp_path / "FashionMNIST" / "raw" / "train-images-idx3-ubyte"
    for half in (1000, 3):
        raw.write_bytes(raw.read_bytes()[:half])  # half unpacked, by whoever
        data.load("fashion-mnist", root=tmp_path, download=False)
        assert raw.read_bytes() == fashion[raw.name]
    assert len(server.asked) == asked


# Downloads that go wrong

NAMES = ("cifar10", "stl10", "fashion-mnist")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # torchvision closes no answer
@pytest.mark.parametrize(
    ("name", "trouble"),
    [
        *(
            ("cifar10", trouble) for trouble in ("cut", "another file", "503", "damaged archive")
        ),  # torchvision's
        *(("stl10", trouble) for trouble in ("cut", "another file", "503", "damaged archive")),  # ours
        ("fashion-mnist", "damaged archive"),  # of gzip
    ],
)
def test_whatever_goes_wrong_is_one_line_and_calling_again_mends_it(sets, server, tmp_path, name, trouble):
    right = dict(server.files)
    if trouble == "cut":
        server.cut = [1_000] * 3
    elif trouble == "another file":
        server.files = dict.fromkeys(right, b"<html>Welcome to the hotel's network</html>")
    else:
        server.status = 503
    path = tmp_path / published.SETS[name].archives()[0][1]
    if trouble == "damaged archive":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(right[path.name][:1_000])
    with pytest.raises(
        data.Unavailable, match=f"{name} is not, or not whole, in .*To do: call again"
    ) as answer:
        data.load(name, root=tmp_path)
    assert "\n" not in str(answer.value) and isinstance(answer.value, FileNotFoundError)
    assert "by hand" in str(answer.value) and "'folder:PATH'" in str(answer.value)
    assert all(Path(path).name in str(answer.value) for _, path, _ in published.SETS[name].archives())
    assert all(not place.complete for place in data.on_disk(tmp_path))
    server.files, server.status, server.cut = right, 200, []
    assert len(data.load(name, root=tmp_path))
    del answer
    gc.collect()


def test_an_archive_of_stl10_goes_on_where_it_stopped(stl10, server, tmp_path):
    for size in (5_000, 3_000):
        server.cut = [size]
        with pytest.raises(data.Unavailable, match=r"broke off with [58] kB here"):
            data.load("stl10", root=tmp_path)
    (kept,) = data.on_disk(tmp_path)
    assert (kept.name, kept.bytes, kept.complete) == ("stl10", 8_000, False)
    assert len(data.load("stl10", root=tmp_path)) == 3
    assert [wanted for _, wanted in server.asked] == ["bytes=0-", "bytes=5000-", "bytes=8000-"]


@pytest.mark.parametrize("ranges", [True, False])
def test_what_is_complete_but_for_its_name_is_used_and_a_server_that_cannot_go_on_starts_again(
    stl10, server, tmp_path, ranges
):
    part = tmp_path / "stl10_binary.tar.gz.part"
    part.write_bytes(server.files["stl10_binary.tar.gz"] if ranges else bytes(5_000))
    server.ranges = ranges
    assert len(data.load("stl10", root=tmp_path)) == 3
    assert not part.exists()


def test_damaged_and_half_unpacked_files_are_mended_and_a_readers_are_left_alone(
    cifar10, stl10, server, tmp_path
):
    data.load("cifar10", root=tmp_path)
    data.load("stl10", root=tmp_path)
    mine = tmp_path / "cifar-10-batches-py" / "my notes.txt"
    mine.write_text("mine")
    batch = tmp_path / "cifar-10-batches-py" / "data_batch_3"
    batch.write_bytes(batch.read_bytes()[:-1] + b"?")
    (tmp_path / "cifar-10-batches-py" / "batches.meta").unlink()
    half = tmp_path / "stl10_binary" / "train_X.bin"
    half.write_bytes(half.read_bytes()[:PICTURE])
    asked = len(server.asked)
    assert len(data.load("cifar10", root=tmp_path)) == 20 and len(data.load("stl10", root=tmp_path)) == 3
    assert batch.read_bytes() == cifar10["data_batch_3"]
    assert len(server.asked) == asked and mine.read_text() == "mine"


def test_an_interrupted_unpacking_leaves_no_file_of_the_final_name(stl10, tmp_path, monkeypatch):
    def interrupted(source: io.BytesIO, target: io.BytesIO, _: int) -> None:
        target.write(source.read(100))
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "copyfileobj", interrupted)
        with pytest.raises(KeyboardInterrupt):
            data.load("stl10", root=tmp_path)
    assert not any(file.suffix == ".bin" for file in (tmp_path / "stl10_binary").iterdir())
    assert len(data.load("stl10", root=tmp_path)) == 3


def _entry(name: str, content: bytes, **more: object) -> tuple[tarfile.TarInfo, io.BytesIO]:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    for attribute, value in more.items():
        setattr(entry, attribute, value)
    return entry, io.BytesIO(content)


SPARSE = {"GNU.sparse.size": "8", "GNU.sparse.map": "4,4", "GNU.sparse.numblocks": "1"}
TWO_READINGS = {
    "twice": ([_entry("a.bin", b"12345678"), _entry("a.bin", b"abcdefgh")], "a.bin is in it twice"),
    "shorter": ([_entry("a.bin", b"1234")], "no plain file of 8 bytes"),
    "longer": ([_entry("a.bin", b"123456789")], "no plain file of 8 bytes"),
    "its size said twice": ([_entry("a.bin", b"12345678", pax_headers={"size": "3"})], "no plain file of 8"),
    "with holes": ([_entry("a.bin", b"abcd", pax_headers=SPARSE)], "no plain file of 8 bytes"),
    "a folder": ([_entry("a.bin", b"", type=tarfile.DIRTYPE)], "no plain file of 8 bytes"),
    "a link": ([_entry("a.bin", b"", type=tarfile.SYMTYPE, linkname="/etc/passwd")], "link as file"),
}


@pytest.mark.parametrize(("entries", "why"), TWO_READINGS.values(), ids=TWO_READINGS)
def test_a_member_that_is_in_an_archive_twice_or_of_two_sizes_is_refused(tmp_path, entries, why):
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for entry, content in entries:
            content.seek(0)
            archive.addfile(entry, content)
    with pytest.raises((ValueError, tarfile.TarError), match=why):
        downloads.unpack(tmp_path / "a.tar.gz", {"a.bin": 8}, tmp_path / "out")
    left = tmp_path / "out" / "a.bin"
    assert not left.exists() or left.read_bytes() == b"12345678"


def test_a_data_directory_that_cannot_be_is_named(cifar10, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(data.Unavailable, match=r"(Not a directory|exists).*set CLUTILS_DATA"):
        data.load("cifar10", root=tmp_path / "file")


# Offline


@pytest.mark.parametrize("name", NAMES)
def test_a_network_that_is_not_there_or_silent_is_one_line_and_soon(
    sets, server, tmp_path, monkeypatch, name
):
    monkeypatch.setattr(downloads, "PATIENCE", 0.3)
    theirs = published.SETS[name].theirs
    with socket.create_server(("127.0.0.1", 0)) as silent, socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        for there, reason in ((silent, "timed out"), (unused, "Connection refused")):
            address = f"http://127.0.0.1:{there.getsockname()[1]}/"
            if name == "fashion-mnist":
                monkeypatch.setattr(theirs, "mirrors", [address])
            else:
                monkeypatch.setattr(theirs, "url", f"{address}{theirs.filename}")
            start = time.perf_counter()
            with pytest.raises(data.Unavailable, match=reason) as answer:
                data.load(name, root=tmp_path / "data")
            assert time.perf_counter() - start < 2 and "\n" not in str(answer.value)
    assert socket.getdefaulttimeout() is None


def test_without_permission_to_download_nothing_is_asked(cifar10, server, tmp_path):
    with pytest.raises(data.Unavailable, match="download=False"):
        data.load("cifar10", root=tmp_path, download=False)
    assert server.asked == [] and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("split", ["train", "unlabeled"])
def test_a_fallback_says_so_once_and_in_its_source(tmp_path, split, capsys):
    found = data.load("stl10", split, limit=20, fallback="scenes", root=tmp_path, download=False)
    (banner,) = capsys.readouterr().out.splitlines()
    why = "downloading is switched off by download=False"
    assert banner == f"stl10 could not be downloaded ({why}). Using scenes instead"
    assert found.images.shape == (20, 3, 96, 96)
    assert "20 generated scenes" in found.source and found.source.endswith("in place of stl10")


@pytest.mark.parametrize("name", data.OWN)
def test_a_path_of_ones_own_that_is_not_there_never_becomes_another_set(tmp_path, name, capsys):
    with pytest.raises(data.Unavailable, match="none is no "):
        data.load(f"{name}{tmp_path}/none", fallback="scenes", limit=5)
    assert capsys.readouterr().out == ""


def test_a_fallback_says_that_there_is_no_network(tmp_path, capsys, monkeypatch):
    def unreachable(*_, **__):
        raise urllib.error.URLError("Name or service not known")

    monkeypatch.setattr("urllib.request.urlopen", unreachable)
    data.load("cifar10", limit=2, fallback="scenes", root=tmp_path)
    assert capsys.readouterr().out == "cifar10 could not be downloaded (no network). Using scenes instead\n"


def test_a_fallback_is_not_used_for_what_is_there_or_wrong(cifar10, tmp_path, capsys):
    assert "CIFAR-10" in data.load("cifar10", fallback="scenes", root=tmp_path).source
    with pytest.raises(ValueError, match="no split 'dev'"):
        data.load("cifar10", "dev", fallback="scenes", root=tmp_path)
    assert capsys.readouterr().out == ""


# The data directory


def test_the_data_directory_is_the_projects_unless_said_otherwise(root, tmp_path, monkeypatch):
    monkeypatch.delenv("CLUTILS_DATA", raising=False)
    assert data.directory() == root / "data"
    monkeypatch.setenv("CLUTILS_DATA", str(tmp_path / "elsewhere"))
    assert data.directory() == tmp_path / "elsewhere"
    assert data.directory(tmp_path / "here") == tmp_path / "here"


def test_on_disk_tells_whole_sets_from_halves(cifar10, stl10, server, tmp_path):
    assert data.on_disk(tmp_path) == [] and data.on_disk(tmp_path / "nowhere") == []
    for split in ("train", "test"):
        data.load("cifar10", split, root=tmp_path)
    data.load("stl10", "test", root=tmp_path)
    packed = {name: len(content) for name, content in server.files.items()}
    first, second = data.on_disk(tmp_path)
    assert (first.name, first.path, first.complete) == ("cifar10", tmp_path / "cifar-10-batches-py", True)
    assert first.bytes == packed["cifar-10-python.tar.gz"] + sum(map(len, cifar10.values()))
    assert second.complete  # the archive still holds the other splits
    (tmp_path / "stl10_binary.tar.gz").unlink()
    assert not data.on_disk(tmp_path)[1].complete
    (tmp_path / "cifar-10-python.tar.gz").unlink()
    assert data.on_disk(tmp_path)[0].complete  # nothing is missing without it


def test_the_readme_and_the_list_of_names_give_the_sizes_that_are_downloaded(root):
    text = (root / "data" / "README.md").read_text(encoding="utf-8")
    for name, known in published.SETS.items():
        row = next((line for line in text.splitlines() if line.startswith(f"| `{name}`")), "")
        assert row, f"data/README.md has no row of {name}"
        assert downloads.human(known.size) in row
        said = data.NAMES[name].split("a download of ")[1].split()
        assert float(said[0]) == pytest.approx(known.size / {"MB": 1e6, "GB": 1e9}[said[1]], rel=0.02)
