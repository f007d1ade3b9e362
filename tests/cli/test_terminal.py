"""What a terminal shows, and what a pipe gets: verdicts in colour, errors under `--json`, and wide help."""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from commands import find_command

from pmlopt.cli import main
from pmlopt.cli.printing import print_table
from pmlopt.cli.terminal import print_line, shows_styles
from pmlopt.library import load_all
from pmlopt.model.utility import Utility, as_utility

RED, GREEN, END = "\x1b[31m\x1b[1m", "\x1b[32m\x1b[1m", "\x1b[0m"


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


def show(*lines: str, stream: io.StringIO | None = None) -> str:
    """What lines are on a terminal, or another stream."""
    target = Terminal() if stream is None else stream
    with contextlib.redirect_stdout(target):
        for line in lines:
            print_line(line)
    return target.getvalue()


def test_verdicts_are_bold_and_coloured_on_a_terminal() -> None:
    assert show("It FAILS.", "All of it holds.") == (
        f"It {RED}FAILS{END}.\nAll of it {GREEN}holds{END}.\n"
    )
    target = Terminal()
    with contextlib.redirect_stdout(target):
        print_table(
            ["part", "verdict", "found"], [["rows", "holds", "10"], ["order", "FAILS", "no"]]
        )
    # what is not seen takes no room: the columns stay aligned
    assert f"  rows   {GREEN}holds{END}    10\n" in target.getvalue()
    assert f"  order  {RED}FAILS{END}    no\n" in target.getvalue()


def test_long_lines_wrap_to_the_width_of_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    line = "  solver     highs: " + "words of a reason " * 5 + "FAILS"
    shown = click.unstyle(show(line)).splitlines()
    assert max(map(len, shown)) <= 40
    assert [part[:13].strip() for part in shown[1:]] == [""] * (len(shown) - 1)
    assert " ".join(" ".join(shown).split()) == " ".join(line.split())
    assert f"{RED}FAILS{END}" in show(line)
    assert show(line, stream=io.StringIO()) == f"{line}\n"
    assert show("x" * 60) == f"{'x' * 60}\n"  # a path or a digest is copied whole


def test_other_words_have_no_style() -> None:
    for line in ("the bound holds for every prior", "NO is a country", "FAILSAFE", "  holdsout  1"):
        assert show(line) == f"{line}\n"


def test_no_escape_of_the_data_reaches_the_terminal() -> None:
    assert show("\x1b[2J FAILS") == f"\\x1b[2J {RED}FAILS{END}\n"


@pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_styles_are_turned_off_by_the_environment(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    assert show("It FAILS.") == "It FAILS.\n"


def test_an_empty_no_color_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "")
    assert "\x1b" in show("It FAILS.")


def test_a_pipe_and_a_closed_stream_get_no_styles() -> None:
    pipe = io.StringIO()
    assert show("It FAILS.", stream=pipe) == "It FAILS.\n"
    pipe.close()
    assert not shows_styles(pipe)
    assert not shows_styles(None)


def run_json(*arguments: str) -> tuple[int, str, Any]:
    found = CliRunner().invoke(main, arguments)
    return found.exit_code, found.stdout, json.loads(found.stderr)


@pytest.fixture
def prior(tmp_path: Path) -> str:
    path = tmp_path / "prior.csv"
    path.write_text("letter,count\na,3\nb,2\n")
    return str(path)


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        (("--epsilon", "-1", "--utility", "hamming"), "PrivacyError", "epsilon"),
        (("--epsilon", "1", "--utility", "haming"), "UtilityError", "did you mean 'hamming'"),
        (("--epsilonn", "1"), "NoSuchOption", "--epsilonn"),
        (("--epsilon", "much"), "BadParameter", "much"),
    ],
)
def test_errors_under_json_are_json(
    prior: str, options: tuple[str, ...], kind: str, words: str
) -> None:
    code, printed, error = run_json("design", "--prior", prior, *options, "--json")
    assert printed == ""
    assert error == {
        "format": "pmlopt error",
        "error": error["error"],
        "kind": kind,
        "exit_code": code,
    }
    assert code == 2
    assert words in error["error"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("desing",), "did you mean 'design'"),
        (("ledger", "shwo"), "shwo"),
        (("audit", "no.json"), "no.json"),
    ],
)
def test_errors_of_names_under_json_are_json(arguments: tuple[str, ...], words: str) -> None:
    code, printed, error = run_json(*arguments, "--json")
    assert (code, printed, error["exit_code"]) == (2, "", 2)
    assert words in error["error"]


def test_errors_without_json_are_text(prior: str) -> None:
    line = ["design", "--prior", prior, "--epsilon", "-1", "--utility", "hamming"]
    found = CliRunner().invoke(main, line)
    assert found.exit_code == 2
    assert found.stderr.splitlines()[-1].startswith("pmlopt: ")


@pytest.mark.parametrize(
    ("columns", "least", "most"), [(60, 50, 60), (110, 81, 110), (300, 100, 120)]
)
def test_help_wraps_to_the_width_of_the_terminal(
    monkeypatch: pytest.MonkeyPatch, columns: int, least: int, most: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    with main.make_context("pmlopt", ["design"]) as parent:
        command = find_command("design")
        text = command.make_context("design", [], parent, resilient_parsing=True).get_help()
    described = [line for line in text.splitlines() if not line.lstrip().startswith("-")]
    assert least <= max(map(len, described)) <= most


def complete(option: str, begun: str, command: str = "design") -> list[str]:
    """What a shell completes for the value of an option or argument."""
    (parameter,) = (one for one in find_command(command).params if option in (*one.opts, one.name))
    context = click.Context(find_command(command))
    return [item.value for item in parameter.shell_complete(context, begun) if item.type == "plain"]


def test_names_of_utilities_are_completed_and_each_is_one() -> None:
    assert complete("--utility", "ham") == ["hamming"]
    assert complete("--utility", "Mutual") == ["mutual-information"]
    names = complete("--utility", "")
    assert "estimation-error:prefix" in names
    assert all(isinstance(as_utility(name), Utility) for name in names)
    assert complete("--utility", "", "sweep") == complete("--utility", "", "explore") == names


def test_names_of_requirements_are_completed_where_options_make_them() -> None:
    names = complete("--privacy", "")
    (option,) = (one for one in find_command("design").params if "--privacy" in one.opts)
    assert isinstance(option, click.Option)
    listed = re.sub(r", or the name.*", "", option.help or "", flags=re.DOTALL).split(", ")
    assert set(listed) <= set(names)  # tests before this one may have requirements of their own
    assert names == sorted(names)
    assert complete("--privacy", "ld") == ["ldp"]


def test_problems_are_completed_by_id() -> None:
    known = sorted(one.id for one in load_all())
    assert complete("problem", "", "solve") == complete("problem", "", "sweep") == known
    assert all(name.startswith("hist") for name in complete("problem", "hist", "solve"))


def test_files_are_completed_next_to_names() -> None:
    (parameter,) = (one for one in find_command("solve").params if one.name == "problem")
    items = parameter.shell_complete(click.Context(find_command("solve")), "my")
    assert [(item.type, item.value) for item in items] == [("file", "my")]
