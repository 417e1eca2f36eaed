"""What is read off features, against what is known of the images."""

import torch

from clutils import data
from clutils.course import experiments


def test_left_and_right_are_told_by_the_mask():
    scenes = data.load("scenes", "test", limit=50)
    for mask, found in zip(scenes.masks, experiments.on_the_right(scenes).tolist(), strict=True):
        columns = [x + 0.5 for y in range(32) for x in range(32) if mask[y, x]]
        assert found == int(sum(columns) / len(columns) > 16)


def test_a_probe_reads_what_is_there_and_guesses_what_is_not():
    train, test = data.load("scenes", limit=400), data.load("scenes", "test", limit=400)

    def tells_brightness_only(pictures):
        bright = pictures.images.float().mean(dim=(1, 2, 3))[:, None]
        noise = torch.randn(len(bright), 3, generator=torch.Generator().manual_seed(0))
        return torch.cat([bright, noise], dim=1)

    read = experiments.readable(tells_brightness_only, train, test)
    assert set(read) == {"class", "bright", "right"}
    assert read["bright"] > 0.95
    assert read["class"] < 0.2
    assert 0.4 < read["right"] < 0.6
    unmasked = data.ImageSet(train.images, train.labels, train.class_names, None, "without masks")
    assert set(experiments.readable(tells_brightness_only, unmasked, test)) == {"class", "bright"}
