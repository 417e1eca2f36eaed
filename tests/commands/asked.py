"""What the tests of the commands share: a command in this process, and the one line that it complains in."""

import re

import pytest

from clutils import __main__ as command_line


def run(*arguments: object) -> int:
    """The exit code, in this process."""
    try:
        return command_line.main([str(argument) for argument in arguments])
    except SystemExit as exit:  # argparse's own
        return exit.code


def complaint(capsys: pytest.CaptureFixture[str]) -> str:
    """What stderr holds, which must be one line of ours."""
    text = capsys.readouterr().err
    assert re.fullmatch(r"clutils: .+\n", text), text
    return text
