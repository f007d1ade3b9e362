"""An option that is given twice adds up or is refused; what is printed fits a terminal, in sentences."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from cli.hostile import refused, write
from click.testing import CliRunner
from commands import find_command, run

from pmlopt.cli import main
from pmlopt.cli.printing import format_number


def commands(group: click.Group = main, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The names of all commands, each with those of its groups."""
    for name in group.list_commands(click.Context(group)):
        command = find_command(name, group)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name)


def command_of(path: tuple[str, ...]) -> click.Command:
    command: click.Command = main
    for name in path:
        assert isinstance(command, click.Group)
        command = find_command(name, command)
    return command


@pytest.mark.parametrize("path", list(commands()), ids=" ".join)
def test_the_last_of_two_never_wins_unsaid(path: tuple[str, ...]) -> None:
    for option in command_of(path).params:
        if isinstance(option, click.Option) and not option.multiple:
            once = [option.opts[0]] if option.is_flag else [option.opts[0], "0.5"]
            result = CliRunner().invoke(main, [*path, *once, *once])
            assert result.exit_code == 2, result.output
            assert "is given more than once" in result.output.replace("\n", " ")


def test_columns_have_any_names(folder: Path) -> None:
    write(folder, "odd.csv", 'level,"last, first",home town,all\na,x,y,z\n')
    apply = ("apply", "m.json", "odd.csv", "--column", "level", "-o", "out.csv")
    names = ("--drop", "last, first", "--drop", "home town")
    assert "stay in clear: 'all'" in run(*apply, *names)
    assert "stay in clear: 'last, first', 'home town'" in run(*apply, "--drop", "all")
    assert "stay in clear" not in run(*apply, *names, "--drop", "all")
    assert "stay in clear: 'home town'\n" in run(*apply, "--keep", "home town")


def test_what_stays_in_clear_is_said_before_anything_is_written(folder: Path) -> None:
    write(folder, "data.csv", "id,level\n1,a\n2,nothing\n")
    asked = ("apply", "m.json", "data.csv", "--column", "level", "-o", "out.csv")
    assert "stay in clear: 'id'" in run(*asked, "--keep", "id", code=2)
    assert "nothing is said of 'id', which would be published" in run(*asked, code=2)
    assert not (folder / "out.csv").exists()
    refused(folder, "apply m.json data.csv --column level -o out.csv --drop id --drop-all")


def test_the_help_of_each_command_begins_with_a_sentence_that_fits() -> None:
    listed = run("--help").partition("Commands:\n")[2].splitlines()
    assert all(line.endswith(".") and not line.endswith("...") for line in listed)
    assert all(len(line) <= 80 for line in listed)


@pytest.mark.parametrize("words", [(), ("ADULT", "absolute")])
def test_problems_are_listed_within_80_columns(words: tuple[str, ...]) -> None:
    lines = run("problems", *words).splitlines()
    assert max(map(len, lines)) <= 80
    named = {line for line in lines[:-1] if not line.startswith(" ")}
    found = json.loads(run("problems", *words, "--json"))["problems"]
    assert named == {problem["id"] for problem in found}
    assert "adult-education-absolute" in named
    assert lines[-1].startswith(f"{len(found)} problems")


def test_zero_is_zero() -> None:
    assert format_number(-0.0) == "0"
    assert format_number(None) == ""
    assert format_number(-1e-9) == "-1e-09"  # a level may be as small as it likes
