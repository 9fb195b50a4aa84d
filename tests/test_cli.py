"""The command line as a whole: every command can be asked what it does."""

import pytest

from ale_velocity import cli

COMMANDS = [
    "bench",
    "doctor",
    "duel",
    "export",
    "speedup",
    "sweep",
    "timeline",
    "timeline refresh",
    "verdicts",
    "wheelhouse",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_printed(command, capsys):
    """`--help` of each command prints its usage and ends with 0."""
    with pytest.raises(SystemExit) as end:
        cli.main([*command.split(), "--help"])

    assert end.value.code == 0
    assert f"usage: ale-velocity {command}" in capsys.readouterr().out
