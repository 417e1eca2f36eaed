"""Files that the explorers open on: a run, images by sentences, small images, README's first picture.

python benchmarks/explorers.py --record         trains the run that the page `run` opens on
python benchmarks/explorers.py --record --images folder:PATH     CIFAR-10's: the run that notebook 12 replays
python benchmarks/explorers.py --pairs          images by sentences, before and after CLIP: pairs.json
python benchmarks/explorers.py --tiles          the small images of the front page: front.webp
python benchmarks/explorers.py --hero           two circles in motion for README: an animated WebP
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from clutils import data, explorers, files, losses, training, views
from clutils.course import evidence, records
from clutils.course import images_and_sentences as lesson
from clutils.course.images_and_sentences import captions
from clutils.data.sentences import tokens
from clutils.training import watcher
from clutils.training.provenance import provenance

ROOT = Path(__file__).resolve().parents[1]
RECORDED = ROOT / "clutils" / "explorers" / "recorded.json"
PAIRS = RECORDED.with_name("pairs.json")
TILES = ROOT / "clutils" / "course" / "book" / "front.webp"
SHOWN = ("rings", "checker", "diagonal stripes", "dots")  # classes of the sixteen images on the circles
HERO = ROOT / "notebooks" / "pictures" / "hero.webp"
FRAMES, LASTS, RESTS = 46, 100, 3000  # of the hero: images, milliseconds of each, and of the last one
ALONE = "main > p, .turn, #starts, .side > .bar { display: none } .story { min-height: 2.8em }"
STEPS, EVERY, PICTURES, COLUMNS = 300, 5, 250, 16


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--pairs", action="store_true")
    parser.add_argument("--tiles", action="store_true")
    parser.add_argument("--hero", action="store_true")
    parser.add_argument("--images", metavar="folder:PATH", help="CIFAR-10 as folders of train and test")
    options = parser.parse_args()
    if options.record:
        return record(options.images)
    if options.pairs:
        return pairs()
    if options.tiles:
        return tiles()
    if options.hero:
        return hero()
    return parser.error("nothing to make: --record, --pairs, --tiles or --hero says what")


def record(images: str | None) -> None:
    """Train, look every few steps, and write what the page `run` shows.

    - images: CIFAR-10 as folders, with the settings that SimCLR's grid in `evidence.py real_images` chose;
      None = generated scenes
    """
    given: dict[str, Any] = {"loss": losses.NTXent(0.2), "learning_rate": 0.01, "steps": STEPS}
    kept, every, count = RECORDED, EVERY, 4000
    if images:
        given = evidence.run_arguments(evidence.chosen("real_images", "SimCLR")) | {"steps": 5 * STEPS}
        kept, every, count = records.FOLDER / "real_images_run.json", 10 * EVERY, 10_000
    pictures = data.load(images or "scenes", limit=count)
    sample, bank, test = watcher.evaluation_split(pictures, images or "scenes")
    small = sample.subset(slice(0, PICTURES))
    looking = watcher.Watcher(small, bank, test)
    run = training.Run(data=pictures, batch_size=128, seed=0, **given)
    looking.look(run, free=True)

    def look(run: training.Run) -> None:
        if run.steps_done % every == 0:
            looking.look(run, free=True)

    run.finish([look], progress=False)
    made = provenance()
    named = f"{count:,} of CIFAR-10 (JPEG copies)" if images else pictures.source
    source = f"{named}; torch {torch.__version__}; {made['date']}, {made['machine']}, {made['commit']}"
    title = f"simclr with {run.loss}, batches of 128, seed 0"
    shown = explorers.of_run(run.history, looking.looks, small, title, source)
    files.write_atomically(kept, json.dumps(shown, ensure_ascii=False, separators=(",", ":")) + "\n")
    print(f"{kept}: {kept.stat().st_size:,} bytes, kNN {looking.looks[-1].knn:.3f}")


def pairs() -> None:
    """Train CLIP as notebook 17 does; write the cosines of 16 test images and captions, before and after."""
    scenes, words = lesson.experiments.pairs()
    test = data.load("scenes", "test", limit=500, size=lesson.experiments.SIZE)
    said = captions.captions(captions.facts(test), seed=1)[:COLUMNS]
    seen = test.images[:COLUMNS], tokens(said, length=lesson.experiments.LENGTH)
    model, tables = lesson.start("CLIP", 64, 0), {}
    for name, steps in (("fresh", 0), ("trained", lesson.experiments.STEPS)):
        if steps:
            lesson.train(model, "CLIP", scenes.images, words, steps, 64, 0, lesson.experiments.RATE)
        with torch.no_grad():
            u, v = model.eval()(*seen)
        tables[name] = (1000 * (u @ v.T)).round().int().tolist()
    made = provenance()
    source = (
        f"{scenes.source}; torch {torch.__version__}; {made['date']}, {made['machine']}, {made['commit']}"
    )
    found = {"tables": tables, "captions": said, "steps": lesson.experiments.STEPS, "source": source}
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    files.write_atomically(PAIRS, text + "\n")
    print(f"{PAIRS}: {PAIRS.stat().st_size:,} bytes")


def tiles() -> None:
    """Write the front page's images: those of the recorded run, then 16 of four classes, and a view of each.

    Another version of the WebP library writes other bytes, so the file is committed, not made at each build.
    """
    pictures = data.load("scenes", limit=4000)
    sample, _, _ = watcher.evaluation_split(pictures, "scenes")
    run, rest = sample.subset(slice(0, PICTURES)), sample.subset(slice(PICTURES, None))
    if run.labels.tolist() != json.loads(RECORDED.read_text("utf-8"))["labels"]:
        raise SystemExit(f"{RECORDED} shows other images than these: record it again first")
    of_class = [(rest.labels == pictures.class_names.index(name)).nonzero().flatten()[:4] for name in SHOWN]
    chosen = rest.images[torch.stack(of_class).T.flatten()]  # image i is of class i mod 4
    view = (255 * views.pair(chosen)[1]).round().byte()
    every = torch.cat([run.images, chosen, view])
    side, rows = every.shape[-1], -(-len(every) // COLUMNS)
    sheet = torch.zeros(rows * COLUMNS, 3, side, side, dtype=torch.uint8)
    sheet[: len(every)] = every
    sheet = sheet.unflatten(0, (rows, COLUMNS)).permute(0, 3, 1, 4, 2).flatten(2, 3).flatten(0, 1)
    Image.fromarray(sheet.numpy()).save(TILES, "WEBP", quality=55, method=6)
    print(f"{TILES}: {len(every)} images, {TILES.stat().st_size:,} bytes")


def hero() -> None:
    """Write README's first picture: the front page's circles from step 0 to 300, as the page plays them."""
    sys.path.insert(0, str(ROOT / "tests" / "browser"))
    from jupyterlab_driver import browser

    with browser() as chromium:
        page = chromium.new_page(viewport={"width": 680, "height": 640}, reduced_motion="reduce")
        page.goto((ROOT / "notebooks" / "explorers" / "index.html").as_uri())
        page.add_style_tag(content=ALONE)
        page.evaluate("hero.lanes.forEach((lane) => lane.reach(300))")
        circles, story = (page.locator(one).bounding_box() for one in ("#circles", "#story"))
        clip = {"x": 0, "y": circles["y"] - 6, "width": 680}
        clip["height"] = story["y"] + story["height"] - clip["y"] + 6
        shots = []
        for k in range(FRAMES):
            page.evaluate("(step) => hero.show(step)", STEPS * (k / (FRAMES - 1)) ** 2)
            page.evaluate("new Promise(requestAnimationFrame).then(() => new Promise(requestAnimationFrame))")
            shots.append(Image.open(io.BytesIO(page.screenshot(clip=clip))).convert("RGB"))
    times = [LASTS] * (FRAMES - 1) + [RESTS]
    how = {"save_all": True, "duration": times, "loop": 0, "quality": 60, "method": 4}
    shots[0].save(HERO, "WEBP", append_images=shots[1:], **how)
    print(f"{HERO}: {len(shots)} images of {shots[0].size}, {HERO.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
