"""Labels as users hold them: what is no class is refused, and nothing is no label without a word."""

import numpy as np
import pytest
import torch

from clutils import data
from clutils.data.labels import numbered


@pytest.mark.parametrize(
    "labels",
    [
        [0, 1, 1e20, 1],
        np.array([0, 1, 2**63 + 5, 1], np.uint64),
        np.array([0, -1e30, 1, 1]),
        [0.0, 1, 2e18, 1],
    ],
)
def test_a_label_too_large_for_a_class_is_refused_and_quoted(labels):
    """It was cast first, wrapped below 0, and was 'no label' without a word."""
    with pytest.raises(ValueError, match=r"labels (hold|go up to) -?[\d,.e+]+, but must"):
        data.vector_set(np.eye(4), labels=labels)


@pytest.mark.parametrize("none", [["", ""], [None, None], [np.nan, np.nan]])
def test_a_part_without_labels_leaves_the_numbers_of_the_others(none):
    (known, unknown), names = numbered("measure", [0, 1, 2], none)
    assert known.tolist() == [0, 1, 2] and unknown.tolist() == [-1, -1] and names == ()
    (known, unknown), names = numbered("measure", torch.tensor([2, 0]), [])
    assert known.tolist() == [2, 0] and unknown.tolist() == []
