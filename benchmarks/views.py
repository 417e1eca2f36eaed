"""Two random views of every image: `clutils.views` against torchvision's transforms in a DataLoader.

python benchmarks/views.py [--repeats N] [--workers N] [--json FILE]

Counted on both sides: images a second that got both their SimCLR views (crop, flip, colour jitter,
grayscale; one image = two views), from uint8 images in memory to float batches. torchvision works on
Pillow images, one by one, in the workers, which stay alive and are started before the clock; ours works on
whole batches in this process, with as many threads as torch finds cores.
The two take turns, so that whatever else the machine does meets both: trust the ratio (median of the repeats'
own ratios) rather than the rates.
"""

from __future__ import annotations

from clutils import views
from clutils.course import records  # before torch: its threads then sleep while they wait, as in a notebook

# isort: split
import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms

CASES = ((32, 256, 1024), (96, 128, 256))  # pixels, batch, images that torchvision gets a turn


class TwoViews(Dataset):
    """Images as torchvision's data sets give them, with the transforms of SimCLR."""

    def __init__(self, pictures: Tensor) -> None:
        self.arrays = pictures.permute(0, 2, 3, 1).contiguous().numpy()
        ours = views.Augmentation(size=pictures.shape[-1])
        self.transform = transforms.Compose(
            [
                transforms.RandomResizedCrop(ours.size, scale=ours.crop_scale, ratio=ours.crop_ratio),
                transforms.RandomHorizontalFlip(ours.flip),
                transforms.RandomApply([transforms.ColorJitter(*ours.jitter)], ours.jitter_prob),
                transforms.RandomGrayscale(ours.grayscale),
                transforms.ToTensor(),
            ]
        )

    def __len__(self) -> int:
        return len(self.arrays)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        picture = Image.fromarray(self.arrays[index])
        return self.transform(picture), self.transform(picture)


def batched(pictures: Tensor, batch: int, generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor]]:
    """The same with ours: shuffled batches, two views each."""
    augment = views.Augmentation(size=pictures.shape[-1])
    for index in torch.randperm(len(pictures), generator=generator).split(batch):
        chosen = pictures[index]
        yield augment(chosen, generator), augment(chosen, generator)


def rate(batches: Callable[[], Iterator[tuple[Tensor, Tensor]]], passes: int) -> float:
    """Images a second that got both views."""
    began, pictures = time.perf_counter(), 0
    for _ in range(passes):
        for first, second in batches():
            pictures += len(first)
            if first.shape != second.shape:
                raise RuntimeError(f"the two views differ in shape: {first.shape} and {second.shape}")
    return pictures / (time.perf_counter() - began)


def compare(size: int, batch: int, count: int, repeats: int, workers: int) -> dict[str, float]:
    generator = torch.Generator().manual_seed(0)
    pictures = torch.randint(0, 256, (count, 3, size, size), dtype=torch.uint8, generator=generator)
    loader = DataLoader(
        TwoViews(pictures), batch, shuffle=True, num_workers=workers, persistent_workers=workers > 0
    )
    rate(lambda: iter(loader), 1)  # starts the workers
    rate(lambda: batched(pictures, batch, generator), 2)  # the first is slower
    theirs, ours = [], []
    for _ in range(repeats):
        theirs.append(rate(lambda: iter(loader), 1))
        ours.append(rate(lambda: batched(pictures, batch, generator), 4))
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    return {
        "pixels": size,
        "batch": batch,
        "clutils_pictures_per_s": round(statistics.median(ours)),
        "torchvision_pictures_per_s": round(statistics.median(theirs)),
        "ratio": round(statistics.median(ratios), 1),
        "lowest_ratio": round(min(ratios), 1),
        "highest_ratio": round(max(ratios), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--workers", type=int, default=2, help="of torchvision's DataLoader")
    parser.add_argument("--json", type=Path, help="write the table there, with machine and versions")
    options = parser.parse_args()
    threads = torch.get_num_threads()
    print(f"pictures/s, two views each; {options.workers} workers against {threads} torch threads")
    print("pixels  batch  torchvision  clutils  ratio (range of the repeats)")
    rows = []
    for size, batch, count in CASES:
        row = compare(size, batch, count, options.repeats, options.workers)
        rows.append(row)
        theirs, ours = row["torchvision_pictures_per_s"], row["clutils_pictures_per_s"]
        spread = f"{row['lowest_ratio']} to {row['highest_ratio']}"
        print(f"{size:6}  {batch:5}  {theirs:11,}  {ours:7,}  {row['ratio']:5} ({spread})", flush=True)
    if options.json:
        settings = {"repeats": options.repeats, "workers": options.workers}
        options.json.write_text(json.dumps({"rows": rows} | settings | records.provenance(), indent=1) + "\n")


if __name__ == "__main__":
    main()
