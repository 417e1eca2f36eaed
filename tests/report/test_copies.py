"""Copies of labelled images among the test images: found however they were saved, and none where none is."""

import io

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance

from clutils import report
from clutils.report import examination


def saved_as_jpeg(image):
    image.save(written := io.BytesIO(), "JPEG", quality=60)
    return Image.open(written)


CHANGES = {
    "the same": lambda image: image,
    "saved as JPEG": saved_as_jpeg,
    "scaled": lambda image: image.resize((72, 72), Image.BILINEAR).resize(image.size, Image.BILINEAR),
    "brighter": lambda image: ImageEnhance.Brightness(image).enhance(1.25),
    "darker": lambda image: ImageEnhance.Brightness(image).enhance(0.6),
    "less contrast": lambda image: ImageEnhance.Contrast(image).enhance(0.7),
}


@pytest.fixture(scope="module")
def photographs():
    """400 smooth random images of 96 pixels, as photographs are: none is another's copy."""
    draw = torch.Generator().manual_seed(0)
    coarse = torch.rand(400, 3, 12, 12, generator=draw)
    fine = torch.nn.functional.interpolate(coarse, (96, 96), mode="bicubic")
    return (40 + 170 * fine.clamp(0, 1)).to(torch.uint8)


@pytest.mark.parametrize("change", CHANGES)
def test_the_share_of_copies_is_found_whatever_was_done_to_them(photographs, change):
    lent, judged = photographs[:300], photographs[300:].clone()
    for n in range(30):
        image = CHANGES[change](Image.fromarray(lent[n].permute(1, 2, 0).numpy()))
        judged[n] = torch.from_numpy(np.array(image)).permute(2, 0, 1)
    assert examination.copies(judged, lent).tolist() == [True] * 30 + [False] * 70


def test_all_copies_are_found_and_flat_images_only_where_they_are_the_same(photographs):
    darker = (photographs[:50].float() * 0.8).to(torch.uint8)
    assert examination.copies(darker, photographs).all()
    flat = torch.arange(20, dtype=torch.uint8)[:, None, None, None].expand(20, 3, 96, 96)
    assert not examination.copies(flat[:10], flat[10:]).any()
    assert examination.copies(flat[:10], flat).all()


@pytest.mark.parametrize("name", ["digits", "scenes"])
def test_images_of_one_kind_are_no_copies_of_one_another(name):
    gallery, judged = report.load(name, 1400)
    assert examination.copies(judged.images, gallery.images).double().mean() <= 0.002
