"""What the tests of the GPU path share."""

from collections.abc import Iterator

import pytest

from tests.on_a_gpu.pretend_cuda import Traffic, pretend_cuda


@pytest.fixture
def gpu() -> Iterator[Traffic]:
    """The device "cuda" is there for the time of a test; gives what crosses over to it and back."""
    with pretend_cuda() as traffic:
        yield traffic
