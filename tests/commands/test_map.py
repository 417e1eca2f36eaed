"""`map`: a run and a folder of images become one page; what does not fit is one line."""

import pytest
from PIL import Image

from clutils import files, training
from tests.commands.asked import complaint, run


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photos")
    for k in range(24):
        Image.new("RGB", (20 + k % 3, 20), (10 * k, 255 - 10 * k, 9 * k)).save(folder / f"photo {k}.png")
    return folder


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    run_ = training.train(data="scenes", encoder="conv16", steps=1, batch_size=16, seed=0)
    run_.save(folder / "checkpoint.pt")
    return folder


def test_an_encoder_of_grey_images_maps_photographs_in_colour(photos, tmp_path, capsys):
    digits = training.train(data="digits", encoder="conv16", steps=1, batch_size=16, seed=0)
    digits.save(tmp_path / "checkpoint.pt")
    given = ("--std", 0.5, "--out", tmp_path / "map.html")
    assert run("map", tmp_path, "--data", f"folder:{photos}", *given) == 0
    said = capsys.readouterr().out
    assert "colours averaged" in said and (tmp_path / "map.html").exists()
    assert "normalisation" not in said  # it is the one that was given


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--pictures", 10), "--images: limit is 10, but must be a whole number from 20 to 5000"),
        (("--out", "map.pdf"), "--out: map.pdf ends in '.pdf', but must end in .html"),
        (("--data", "sentences:toy"), "sentences"),
        (("--mean", "cifar"), "cifar"),
        (("--std", "0"), "--std: std is 0, but must be above 0"),
        (("--out", "nowhere/map.html"), "there is no folder nowhere"),
        (("--out", "mine.html"), "--out: mine.html is there already, and is no file of this package"),
    ],
)
def test_what_does_not_fit_is_one_line_that_quotes_it(
    photos, saved, capsys, given, said, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.html").write_text("<h1>A page of somebody's own</h1>")
    assert run("map", saved, "--data", f"folder:{photos}", *given) == 2
    assert said in complaint(capsys)


def test_too_few_images_and_a_run_without_a_checkpoint_are_one_line_before_any_work(
    photos, saved, capsys, tmp_path
):
    (tmp_path / "one").mkdir()
    Image.new("RGB", (20, 20)).save(tmp_path / "one" / "a.png")
    assert run("map", saved, "--data", f"folder:{tmp_path / 'one'}") == 2
    said = capsys.readouterr()
    assert f"--data folder:{tmp_path / 'one'}: 1 of the 20 images that a map needs" in said.err
    assert "features" not in said.out
    (tmp_path / "config.json").write_text("{}")
    for command in ("map", "check"):
        assert run(command, tmp_path, "--data", f"folder:{photos}") == 1
        assert "has no checkpoint.pt yet: train writes it at the end" in complaint(capsys)


def test_a_damaged_image_is_left_out_and_named(photos, saved, tmp_path, capsys):
    for file in photos.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "photo 99.png").write_text("no image")
    assert run("map", saved, "--data", f"folder:{tmp_path}", "--out", tmp_path / "map.html") == 0
    files.demand_writable(tmp_path / "map.html")  # a map may be replaced by the next one
    said = capsys.readouterr().out
    assert "read 24 images" in said and "1 that can't be read left out: photo 99.png" in said
