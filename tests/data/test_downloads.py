"""Published sets: their files' layout, and downloads that break, lie, stall or never start.

The archives are small ones of the true layout, written here and served by a local server.
"""

import dataclasses
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
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
import torchvision

from clutils import data
from clutils.data import downloads, published
from clutils.data.downloads import Archive, Member

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


def served(
    server: Server, name: str, packed: list[bytes], members: list[dict[str, bytes]], by_size: bool
) -> published.Published:
    """The published set `name` with these archives and members instead of its own."""
    archives = []
    for archive, content, files in zip(published.SETS[name].archives, packed, members, strict=True):
        server.files[Path(archive.url).name] = content
        archives.append(
            Archive(
                f"{server.address}/{Path(archive.url).name}",
                archive.path,
                len(content),
                md5(content),
                tuple(Member(m, len(c) if by_size else None, md5(c)) for m, c in files.items()),
            )
        )
    return dataclasses.replace(published.SETS[name], archives=tuple(archives))


@pytest.fixture
def cifar10(server: Server, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """CIFAR-10 with four pictures a batch; gives the members."""
    draw = np.random.default_rng(0)
    names = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    folder = "cifar-10-batches-py"
    files = {
        f"{folder}/{batch}": pickle.dumps(
            {"data": draw.integers(0, 256, (4, 3072), np.uint8), "labels": draw.integers(0, 10, 4).tolist()}
        )
        for batch in [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]
    }
    files[f"{folder}/batches.meta"] = pickle.dumps({"label_names": names})
    packed = tar_gz({f"{folder}/readme.html": b"not asked for", **files})
    small = served(server, "cifar10", [packed], [files], by_size=False)
    monkeypatch.setitem(published.SETS, "cifar10", small)
    return files


@pytest.fixture
def stl10(server: Server, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """STL-10 with 3 + 2 labelled and 4 unlabelled pictures; gives the members."""
    draw = np.random.default_rng(1)
    files = {}
    for part, count in (("train", 3), ("test", 2), ("unlabeled", 4)):
        files[f"stl10_binary/{part}_X.bin"] = draw.integers(0, 256, count * PICTURE, np.uint8).tobytes()
        if part != "unlabeled":
            files[f"stl10_binary/{part}_y.bin"] = draw.integers(1, 11, count, np.uint8).tobytes()
    small = served(server, "stl10", [tar_gz(files)], [files], by_size=True)
    monkeypatch.setitem(published.SETS, "stl10", small)
    return files


# Layouts


def test_addresses_and_checksums_are_torchvisions() -> None:
    for name, theirs in (
        ("cifar10", torchvision.datasets.CIFAR10),
        ("cifar100", torchvision.datasets.CIFAR100),
        ("stl10", torchvision.datasets.STL10),
    ):
        (ours,) = published.SETS[name].archives
        assert (ours.url, ours.path, ours.md5) == (theirs.url, theirs.filename, theirs.tgz_md5)
        listed = dict(theirs.train_list + theirs.test_list)
        if name != "stl10":
            listed[theirs.meta["filename"]] = theirs.meta["md5"]
        assert {m.path: m.md5 for m in ours.members} == {
            f"{theirs.base_folder}/{file}": check for file, check in listed.items()
        }
    fashion = torchvision.datasets.FashionMNIST
    assert [(a.url, a.md5) for a in published.SETS["fashion-mnist"].archives] == [
        (fashion.mirrors[0] + file, check) for file, check in fashion.resources
    ]


def test_cifar10_is_what_torchvision_reads(
    cifar10: dict[str, bytes],
    tmp_path: Path,
    capsys: pytest.CaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours = {split: data.load("cifar10", split, root=tmp_path) for split in ("train", "test")}
    checks = [[Path(file).name, md5(content)] for file, content in cifar10.items()]
    *train, test, meta = checks
    monkeypatch.setattr(torchvision.datasets.CIFAR10, "train_list", train)
    monkeypatch.setattr(torchvision.datasets.CIFAR10, "test_list", [test])
    monkeypatch.setitem(torchvision.datasets.CIFAR10.meta, "md5", meta[1])
    for split, count in (("train", 20), ("test", 4)):
        found, theirs = ours[split], torchvision.datasets.CIFAR10(tmp_path, train=split == "train")
        assert found.images.shape == (count, 3, 32, 32) and found.images.dtype == torch.uint8
        assert np.array_equal(found.images.permute(0, 2, 3, 1), theirs.data)
        assert found.labels.tolist() == theirs.targets and list(found.class_names) == theirs.classes
    assert "cifar-10-python.tar.gz: 100%" in capsys.readouterr().err  # a bar while it downloads
    assert not (tmp_path / "cifar-10-batches-py" / "readme.html").exists()
    assert len(data.load("cifar10", limit=7, root=tmp_path)) == 7
    assert "7 of 20 pictures" in data.load("cifar10", limit=7, root=tmp_path).source


def test_cifar100_gives_the_fine_labels(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    draw, folder = np.random.default_rng(2), "cifar-100-python"
    batches = {
        part: {
            "data": draw.integers(0, 256, (5, 3072), np.uint8),
            "fine_labels": draw.integers(0, 100, 5).tolist(),
            "coarse_labels": draw.integers(0, 20, 5).tolist(),
        }
        for part in ("train", "test")
    }
    files = {f"{folder}/{part}": pickle.dumps(batch) for part, batch in batches.items()}
    names = [f"fine {i}" for i in range(100)]
    files[f"{folder}/meta"] = pickle.dumps({"fine_label_names": names, "coarse_label_names": ["coarse"]})
    small = served(server, "cifar100", [tar_gz(files)], [files], by_size=False)
    monkeypatch.setitem(published.SETS, "cifar100", small)
    found = data.load("cifar100", root=tmp_path)
    assert found.labels.tolist() == batches["train"]["fine_labels"] and list(found.class_names) == names
    assert np.array_equal(found.images[4, 2, 31], batches["train"]["data"][4, -32:])


def test_stl10_pictures_are_stored_column_by_column(stl10: dict[str, bytes], tmp_path: Path) -> None:
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


def test_stl10_unpacks_only_the_split_asked_for(
    stl10: dict[str, bytes], server: Server, tmp_path: Path
) -> None:
    data.load("stl10", "test", root=tmp_path)
    unpacked = tmp_path / "stl10_binary"
    assert {file.name for file in unpacked.iterdir()} == {"test_X.bin", "test_y.bin"}
    data.load("stl10", "unlabeled", root=tmp_path)
    assert len(server.asked) == 1  # the archive was still there


def test_writing_to_stl10_pictures_never_reaches_the_file(stl10: dict[str, bytes], tmp_path: Path) -> None:
    found = data.load("stl10", root=tmp_path)
    found.images[:] = 7
    assert (found.images == 7).all()
    assert (tmp_path / "stl10_binary" / "train_X.bin").read_bytes() == stl10["stl10_binary/train_X.bin"]
    assert not (data.load("stl10", root=tmp_path).images == 7).all()


def test_unlabeled_stl10_needs_no_memory(tmp_path: Path) -> None:
    statistics = Path("/proc/self/statm")
    if not statistics.exists():
        pytest.skip("the memory of a process is read from /proc")

    def resident() -> int:
        return int(statistics.read_text().split()[1]) * 4096

    (tmp_path / "stl10_binary").mkdir()
    with open(tmp_path / "stl10_binary" / "unlabeled_X.bin", "wb") as file:
        file.seek(99_999 * PICTURE)
        file.write(bytes(range(256)) * (PICTURE // 256))  # a hole of 2.7 GB and one picture
    before, start = resident(), time.perf_counter()
    found = data.load("stl10", "unlabeled", root=tmp_path, download=False)
    last = found.subset([99_999, 0])
    assert time.perf_counter() - start < 5
    assert resident() - before < 50e6
    assert found.images.shape == (100_000, 3, 96, 96) and found.labels.unique().tolist() == [-1]
    assert last.images[0, 0, :, 0].tolist() == list(range(96)) and (last.images[1] == 0).all()


def test_fashion_mnist_is_what_torchvision_reads(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    draw, packed, members = np.random.default_rng(4), [], []
    for archive in published.SETS["fashion-mnist"].archives:
        count = 6 if "train" in archive.path else 3
        if "images" in archive.path:
            head = [0x803, count, 28, 28]
            body = draw.integers(0, 256, count * 784, np.uint8)
        else:
            head, body = [0x801, count], draw.integers(0, 10, count, np.uint8)
        content = np.array(head, ">i4").tobytes() + body.tobytes()
        packed.append(gzip.compress(content))
        members.append({archive.members[0].path: content})
    small = served(server, "fashion-mnist", packed, members, by_size=True)
    monkeypatch.setitem(published.SETS, "fashion-mnist", small)
    loaded = {split: data.load("fashion-mnist", split, root=tmp_path) for split in ("train", "test")}
    for split, ours in loaded.items():
        theirs = torchvision.datasets.FashionMNIST(tmp_path, train=split == "train")
        assert torch.equal(ours.images[:, 0], theirs.data) and torch.equal(ours.labels, theirs.targets)
        assert list(ours.class_names) == theirs.classes
    raw = tmp_path / "FashionMNIST" / "raw" / "train-images-idx3-ubyte"
    raw.write_bytes(raw.read_bytes()[:1000])  # half unpacked, by whoever
    data.load("fashion-mnist", root=tmp_path)
    assert raw.read_bytes() == members[0]["FashionMNIST/raw/train-images-idx3-ubyte"]
    assert len(server.asked) == 4


# Downloads that go wrong


def test_what_is_there_is_not_asked_for_again(
    cifar10: dict[str, bytes], server: Server, tmp_path: Path
) -> None:
    for _ in range(2):
        data.load("cifar10", root=tmp_path)
    data.load("cifar10", "test", root=tmp_path, download=False)
    assert len(server.asked) == 1


def test_a_broken_transfer_goes_on_where_it_stopped(
    cifar10: dict[str, bytes], server: Server, tmp_path: Path
) -> None:
    server.cut = [5_000, 3_000]
    assert len(data.load("cifar10", root=tmp_path)) == 20
    assert [wanted for _, wanted in server.asked] == [None, "bytes=5000-", "bytes=8000-"]


def test_a_transfer_that_keeps_breaking_is_finished_by_calling_again(
    cifar10: dict[str, bytes], server: Server, tmp_path: Path
) -> None:
    server.cut = [1_000] * downloads._TRIES
    with pytest.raises(data.Unavailable, match=r"broke off .* with 5 kB here.*call again online") as answer:
        data.load("cifar10", root=tmp_path)
    assert "\n" not in str(answer.value) and isinstance(answer.value, FileNotFoundError)
    assert [file.name for file in tmp_path.iterdir()] == ["cifar-10-python.tar.gz.part"]
    (kept,) = data.on_disk(tmp_path)
    assert (kept.name, kept.bytes, kept.complete) == ("cifar10", 5_000, False)
    assert len(data.load("cifar10", root=tmp_path)) == 20
    assert server.asked[-1][1] == "bytes=5000-"


def test_a_server_that_cannot_go_on_starts_again(
    cifar10: dict[str, bytes], server: Server, tmp_path: Path
) -> None:
    server.cut, server.ranges = [5_000], False
    assert len(data.load("cifar10", root=tmp_path)) == 20


def test_a_download_complete_but_for_its_name_is_used(
    cifar10: dict[str, bytes], server: Server, tmp_path: Path
) -> None:
    part = tmp_path / "cifar-10-python.tar.gz.part"
    part.write_bytes(server.files["cifar-10-python.tar.gz"])
    assert len(data.load("cifar10", root=tmp_path)) == 20
    assert not part.exists()


def test_the_wrong_file_is_thrown_away_and_calling_again_mends_it(
    cifar10: dict[str, bytes], server: Server, tmp_path: Path
) -> None:
    right = server.files["cifar-10-python.tar.gz"]
    server.files["cifar-10-python.tar.gz"] = b"<html>Welcome to the hotel's network</html>"
    with pytest.raises(data.Unavailable, match=r"is not the file \(43 bytes, MD5 .* login page"):
        data.load("cifar10", root=tmp_path)
    assert list(tmp_path.iterdir()) == []
    server.files["cifar-10-python.tar.gz"] = right
    assert len(data.load("cifar10", root=tmp_path)) == 20


def test_a_cut_archive_is_replaced_only_by_a_whole_one(
    cifar10: dict[str, bytes], server: Server, tmp_path: Path
) -> None:
    archive = tmp_path / "cifar-10-python.tar.gz"
    archive.write_bytes(server.files[archive.name][:3_000])
    with pytest.raises(data.Unavailable, match=r"switched off.*; the cifar-10-.* there is damaged"):
        data.load("cifar10", root=tmp_path, download=False)
    server.status = 503
    with pytest.raises(data.Unavailable, match="answered 503"):
        data.load("cifar10", root=tmp_path)
    assert archive.stat().st_size == 3_000
    server.status = 200
    assert len(data.load("cifar10", root=tmp_path)) == 20
    assert archive.read_bytes() == server.files[archive.name]


def test_damaged_and_half_unpacked_files_are_mended_and_a_readers_are_left_alone(
    cifar10: dict[str, bytes], stl10: dict[str, bytes], server: Server, tmp_path: Path
) -> None:
    data.load("cifar10", root=tmp_path)
    data.load("stl10", root=tmp_path)
    mine = tmp_path / "cifar-10-batches-py" / "my notes.txt"
    mine.write_text("mine")
    batch = tmp_path / "cifar-10-batches-py" / "data_batch_3"
    batch.write_bytes(batch.read_bytes()[:-1] + b"?")
    half = tmp_path / "stl10_binary" / "train_X.bin"
    half.write_bytes(half.read_bytes()[:PICTURE])
    untouched = (tmp_path / "cifar-10-batches-py" / "data_batch_1").stat().st_mtime_ns
    asked = len(server.asked)
    assert len(data.load("cifar10", root=tmp_path)) == 20 and len(data.load("stl10", root=tmp_path)) == 3
    assert batch.read_bytes() == cifar10["cifar-10-batches-py/data_batch_3"]
    assert len(server.asked) == asked and mine.read_text() == "mine"
    assert (tmp_path / "cifar-10-batches-py" / "data_batch_1").stat().st_mtime_ns == untouched


def test_an_interrupted_unpacking_leaves_no_file_of_the_final_name(
    stl10: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(source: io.BytesIO, target: io.BytesIO, _: int) -> None:
        target.write(source.read(100))
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "copyfileobj", interrupted)
        with pytest.raises(KeyboardInterrupt):
            data.load("stl10", root=tmp_path)
    assert list((tmp_path / "stl10_binary").iterdir()) == []
    assert len(data.load("stl10", root=tmp_path)) == 3


def test_no_room_on_the_disk_is_said_before_anything_is_written(
    cifar10: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=2_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(data.Unavailable, match=r"more are needed on the disk and 2 kB are free"):
        data.load("cifar10", root=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_data_directory_that_cannot_be_is_named(cifar10: dict[str, bytes], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(data.Unavailable, match=r"(Not a directory|exists).*set CLUTILS_DATA"):
        data.load("cifar10", root=tmp_path / "file")


# Offline


def offline(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    (archive,) = published.SETS["stl10"].archives
    archive = dataclasses.replace(archive, url=f"{address}/stl10_binary.tar.gz")
    changed = dataclasses.replace(published.SETS["stl10"], archives=(archive,))
    monkeypatch.setitem(published.SETS, "stl10", changed)


def test_offline_is_one_line_that_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        offline(monkeypatch, f"http://127.0.0.1:{unused.getsockname()[1]}")
        with pytest.raises(data.Unavailable) as answer:
            data.load("stl10", "unlabeled", root=tmp_path / "data")
    said = str(answer.value)
    for part in ("stl10 is not in", "could not be reached (Connection refused)", "call again online"):
        assert part in said
    assert "put stl10_binary.tar.gz (2.64 GB, http://127.0.0.1" in said and "'folder:PATH'" in said
    assert "\n" not in said and not (tmp_path / "data").exists()


def test_a_network_that_swallows_everything_is_given_up_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "PATIENCE", 0.3)
    monkeypatch.setattr(downloads, "_STALL", 2.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        offline(monkeypatch, f"http://127.0.0.1:{silent.getsockname()[1]}")
        start = time.perf_counter()
        with pytest.raises(data.Unavailable, match=r"could not be reached \(no answer in 0.3 seconds"):
            data.load("stl10", root=tmp_path)
        assert time.perf_counter() - start < 1.5
    for thread in threading.enumerate():
        if thread.name.startswith("asking"):
            thread.join()


def test_without_permission_to_download_nothing_is_asked(
    cifar10: dict[str, bytes], server: Server, tmp_path: Path
) -> None:
    with pytest.raises(data.Unavailable, match="download=False"):
        data.load("cifar10", root=tmp_path, download=False)
    assert server.asked == [] and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("split", ["train", "unlabeled"])
def test_a_fallback_says_so_once_and_in_its_source(
    tmp_path: Path, split: str, capsys: pytest.CaptureFixture
) -> None:
    found = data.load("stl10", split, limit=20, fallback="scenes", root=tmp_path, download=False)
    (banner,) = capsys.readouterr().out.splitlines()
    assert banner.startswith("Not stl10 but scenes: stl10 is not in")
    assert found.images.shape == (20, 3, 96, 96)
    assert "20 generated scenes" in found.source and found.source.endswith("in place of stl10")
    folder = data.load(f"folder:{tmp_path}/none", fallback="digits", limit=5)
    assert len(folder) == 5 and "in place of folder:" in folder.source


def test_a_fallback_is_not_used_for_what_is_there_or_wrong(
    cifar10: dict[str, bytes], tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    assert "CIFAR-10" in data.load("cifar10", fallback="scenes", root=tmp_path).source
    with pytest.raises(ValueError, match="no split 'dev'"):
        data.load("cifar10", "dev", fallback="scenes", root=tmp_path)
    assert capsys.readouterr().out == ""


# The data directory


def test_the_data_directory_is_the_projects_unless_said_otherwise(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CLUTILS_DATA", raising=False)
    assert data.directory() == root / "data"
    monkeypatch.setenv("CLUTILS_DATA", str(tmp_path / "elsewhere"))
    assert data.directory() == tmp_path / "elsewhere"
    assert data.directory(tmp_path / "here") == tmp_path / "here"


def test_on_disk_tells_whole_sets_from_halves(
    cifar10: dict[str, bytes], stl10: dict[str, bytes], server: Server, tmp_path: Path
) -> None:
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


def test_the_readme_and_the_list_of_names_give_the_sizes_that_are_downloaded(root: Path) -> None:
    text = (root / "data" / "README.md").read_text(encoding="utf-8")
    for name, known in published.SETS.items():
        (row,) = (line for line in text.splitlines() if line.startswith(f"| `{name}`"))
        pictures = [archive for archive in known.archives if "labels" not in archive.path]
        for archive in pictures:
            assert downloads.human(archive.size) in row
        total = sum(archive.size for archive in known.archives)
        said = data.NAMES[name].split("a download of ")[1].split()
        assert float(said[0]) == pytest.approx(total / {"MB": 1e6, "GB": 1e9}[said[1]], rel=0.02)
