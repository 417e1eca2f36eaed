"""The list of deliberate faults fits the tree: each can be put in, and the test that it names exists."""

import ast

import pytest

from tests.faults import FAULTS, ROOT, Fault


def functions(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_its_text_stands_once_in_its_file_and_its_test_exists(fault: Fault):
    whole = (ROOT / fault.file).read_text("utf-8")
    assert whole.count(fault.text) == 1
    if fault.file.endswith(".py"):
        ast.parse(whole.replace(fault.text, fault.becomes))
    path, _, test = fault.test.partition("::")
    assert test.partition("[")[0] in functions(path)


def test_there_are_thirty_or_more_by_names_of_their_own():
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 30
