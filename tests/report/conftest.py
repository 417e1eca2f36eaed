"""One healthy encoder, and the report on it that several test files read."""

import pytest

from clutils import report
from tests.report import ailing


@pytest.fixture(scope="session")
def case() -> ailing.Case:
    return ailing.cases()["healthy"]()


@pytest.fixture(scope="session")
def few(case) -> tuple:
    return case.gallery.subset(slice(0, 300)), case.judged.subset(slice(0, 100))


@pytest.fixture(scope="session")
def whole(case, few) -> report.Report:
    return report.check(case.opened, few)
