"""Images on maps: true neighbours, which of them the map keeps, thumbnails in order; the page itself."""

import base64
import io
import json
import re

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.neighbors import NearestNeighbors

from clutils import data, explorers
from clutils.data import ImageSet
from clutils.explorers import photo_map
from tests.explorers.conftest import Opened

N = 60


@pytest.fixture(scope="module")
def pictures() -> ImageSet:
    """Images of one grey each, and labels; the second half repeats the first, one step brighter."""
    level = torch.arange(N) % 30 * 8
    images = (level + (torch.arange(N) >= 30)).to(torch.uint8)[:, None, None, None].expand(-1, 3, 8, 8)
    labels = torch.where(torch.arange(N) < 50, torch.arange(N) % 2, -1)
    return ImageSet(
        images.contiguous(), labels, ("even", "odd"), None, "greys", tuple(f"{k}.png" for k in range(N))
    )


@pytest.fixture(scope="module")
def spaces() -> dict[str, torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    first, second = torch.randn(N, 5, generator=draw), torch.randn(N, 9, generator=draw)
    second[41] = second[7] * 3  # the same direction: its double
    return {"one": first, "two": second}


@pytest.fixture(scope="module")
def text(pictures, spaces) -> str:
    return photo_map.page(pictures, spaces, "a <b> title", names=pictures.files)


def within(text: str) -> dict:
    return json.loads(re.search(r'<script id="data"[^>]*>(.*?)</script>', text, re.DOTALL)[1])


def unpacked(packed: str, kind: type) -> np.ndarray:
    return np.frombuffer(base64.b64decode(packed), kind)


def test_neighbours_are_those_of_scikit_learn_and_kept_by_the_map_where_they_are_near_on_it(text, spaces):
    for drawn, z in zip(within(text)["maps"], spaces.values(), strict=True):
        unit = torch.nn.functional.normalize(z, dim=1).numpy()
        nearest = unpacked(drawn["nearest"], np.uint16).reshape(N, 8)
        theirs = NearestNeighbors(n_neighbors=8, metric="cosine").fit(unit).kneighbors()[0]
        mine = 1 - (unit[:, None] * unit[nearest]).sum(-1)  # by distance: image 41 is as far from all as 7
        assert np.abs(mine - theirs).max() < 1e-5 and all(
            len({k, *row}) == 9 for k, row in enumerate(nearest)
        )
        similar = unpacked(drawn["similar"], np.uint16).reshape(N, 8) * 2.0 / 65_535 - 1
        assert np.abs(similar - (unit[:, None] * unit[nearest]).sum(-1)).max() < 1e-4
        places = unpacked(drawn["places"], np.uint16).reshape(N, 2).astype(float)
        near = NearestNeighbors(n_neighbors=16).fit(places).kneighbors()[1]
        kept = unpacked(drawn["kept"], np.uint8).reshape(N, 8)
        expected = [[int(j in near[k]) for j in nearest[k]] for k in range(N)]
        assert (kept != expected).sum() <= 4  # places are rounded, so two may change their order
        assert abs(drawn["share"] - kept.mean()) < 1e-3


def test_the_pair_that_is_one_direction_comes_first_and_the_loneliest_has_the_farthest_neighbour(
    text, spaces
):
    found, z = within(text), torch.nn.functional.normalize(spaces["two"], dim=1)
    assert found["pairs"][0] == [7, 41, 1.0] and len(found["pairs"]) == len(found["alone"]) == 12
    best = (z @ z.T).fill_diagonal_(-2).max(dim=1).values
    assert found["alone"][0][0] == int(best.argmin())
    assert found["median"] == pytest.approx(float(best.median()), abs=1e-3)


def test_duplicates_are_those_of_nearly_the_same_pixels_however_similar_their_features_are(
    text, pictures, spaces
):
    found = within(text)  # 7 and 41 are one direction, but of two greys
    assert found["duplicates"] == [] and found["copies"] == 0
    doubled = pictures.subset([*range(30), *range(30)])
    found = within(photo_map.page(doubled, spaces, ""))
    assert found["duplicates"] == [[k, 30 + k] for k in range(12)] and found["copies"] == 30


def test_a_brighter_copy_is_a_duplicate_and_images_of_one_colour_only_where_they_are_equal():
    draw = torch.Generator().manual_seed(0)
    images = torch.randint(0, 200, (3, 3, 8, 8), generator=draw, dtype=torch.uint8)
    assert photo_map.duplicates(torch.cat([images, images[1:2] + 20])) == [None, None, None, 1]
    grey = torch.tensor([9, 9, 8, 9], dtype=torch.uint8)[:, None, None, None].expand(-1, 3, 8, 8)
    assert photo_map.duplicates(grey) == [None, 0, None, 0]


def test_each_thumbnail_is_its_own_image(text, pictures):
    packed = re.search(r'<script id="sprite"[^>]*>(.*?)</script>', text, re.DOTALL)[1]
    sheet = np.asarray(Image.open(io.BytesIO(base64.b64decode(packed))).convert("RGB")).astype(float)
    for k in range(N):
        top, left = k // 8 * 48, k % 8 * 48  # eight columns: the root of 60, rounded up
        assert abs(sheet[top : top + 48, left : left + 48].mean() - pictures.images[k].float().mean()) < 3


def test_what_comes_in_is_text_and_nothing_is_fetched(text):
    assert "a &lt;b&gt; title" in text and "a <b> title" not in text
    assert not re.search(r"https?://|<link|src=|\bfetch\(", text) and "default-src 'none'" in text


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"names": ["a"]}, "60 images, but 1 names"),
        ({"spaces": {}}, "spaces is empty"),
        ({"spaces": {"one": torch.zeros(3, 2)}}, "one has 3 rows"),
        ({"pictures": 5}, "number of images is 5"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_number(pictures, spaces, given, said):
    few = pictures.subset(slice(0, given["pictures"])) if "pictures" in given else pictures
    with pytest.raises(ValueError, match=said):
        photo_map.page(few, given.get("spaces", spaces), "", names=given.get("names", few.files))


def test_raw_pixels_are_32_by_32_and_without_their_mean(pictures):
    z = explorers.photo_map.pixels(pictures.images)
    assert z.shape == (N, 3 * 32 * 32) and z.mean(dim=0).abs().max() < 1e-3


def test_names_of_files_follow_their_images(tmp_path):
    for k in range(6):
        (tmp_path / "ab"[k % 2]).mkdir(exist_ok=True)
        Image.new("RGB", (8, 8), (40 * k, 0, 0)).save(tmp_path / "ab"[k % 2] / f"{k}.png")
    found = data.load(f"folder:{tmp_path}")
    for some in (found, found.subset([4, 0]), found.subset(found.labels == 1), found.classes(["b"])):
        assert [int(name[2]) * 40 for name in some.files] == some.images[:, 0, 0, 0].tolist()
    assert data.load("digits", limit=3).files == ()


# ---- the page in a browser ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def page(chromium, tmp_path_factory, text):
    path = tmp_path_factory.mktemp("map") / "map.html"
    path.write_text(text, "utf-8")
    ready, size = "sprite.complete && sprite.naturalWidth > 0", {"width": 1366, "height": 768}
    with Opened(chromium, path, ready=ready, viewport=size) as opened:
        yield opened.page


def place(page, number: int, k: int) -> dict[str, float]:
    """Where an image stands on a map, in pixels of the page."""
    return page.evaluate(
        "([m, k]) => { const b = maps[m].canvas.getBoundingClientRect(), r = b.width / maps[m].canvas.width,"
        " [x, y] = maps[m].at(k); return { x: b.left + x * r, y: b.top + y * r }; }",
        [number, k],
    )


def test_a_click_names_the_image_and_shows_its_neighbours_in_that_maps_features(page, text):
    k = page.evaluate("data.names.map((_, k) => k).find((k) => maps[1].under(maps[1].at(k)) === k)")
    at = place(page, 1, k)
    page.mouse.click(at["x"], at["y"])
    assert page.locator("#says").inner_text().startswith(f"{k}.png")
    drawn = within(text)["maps"][1]
    nearest = unpacked(drawn["nearest"], np.uint16).reshape(N, 8)[k]
    kept = unpacked(drawn["kept"], np.uint8).reshape(N, 8)[k]
    buttons = page.locator("#chosen button")
    assert [said.split(".png")[0] for said in buttons.all_inner_texts()] == [str(j) for j in nearest]
    assert [("far" in (b.get_attribute("class") or "")) for b in buttons.all()] == [not of for of in kept]
    page.keyboard.press("ArrowRight")
    assert page.locator("#says").inner_text().startswith(f"{(k + 1) % N}.png")


def test_a_lasso_gives_the_names_of_the_files_inside(page):
    page.get_by_role("button", name="clear").click()
    page.evaluate("scrollTo(0, 0)")
    box = page.locator("canvas").first.bounding_box()
    page.keyboard.down("Shift")
    corners = [(1, 1), (1, 0.5), (0.01, 0.5), (0.01, 0.01), (1, 0.01)]
    page.mouse.move(box["x"] + box["width"] - 2, box["y"] + 2)
    page.mouse.down()
    for across, down in corners:
        page.mouse.move(box["x"] + across * box["width"] - 2, box["y"] + down * box["height"], steps=3)
    page.mouse.up()
    page.keyboard.up("Shift")
    upper = page.evaluate("data.names.filter((_, k) => maps[0].at(k)[1] < 0.45 * maps[0].canvas.height)")
    lower = page.evaluate("data.names.filter((_, k) => maps[0].at(k)[1] > 0.55 * maps[0].canvas.height)")
    found = set(page.locator("textarea").input_value().split("\n"))
    assert upper and lower and not found & set(lower) and len(found & set(upper)) >= 0.8 * len(upper)


def test_lists_name_their_features_and_claim_no_duplicates_where_pixels_differ(page):
    assert page.get_by_text("No duplicates found").is_visible() and page.locator("#twins").count() == 0
    assert page.locator("#alike summary").inner_text() == "Most similar by these features: two"
    assert "median similarity to the nearest is 0." in page.locator("#loners summary").inner_text()
    for name in ("#alike", "#loners"):
        assert page.locator(f"{name} button").count() == 12


def test_on_a_phone_one_map_is_shown_and_nothing_is_cut(page):
    page.set_viewport_size({"width": 360, "height": 740})
    page.get_by_role("button", name="one", exact=True).click()
    assert page.locator("canvas:visible").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.set_viewport_size({"width": 1366, "height": 768})
