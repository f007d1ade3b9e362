"""The help of every command, its example, and the keys of its JSON."""

from __future__ import annotations

import ast
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from commands import OUTPUT_SCHEMA, check_output_schema, find_command, run, run_fully
from documents import ROOT, parse_file

from pmlopt.cli import main
from pmlopt.cli.help_pages import EXAMPLES, OPTION_GROUPS, find_example, group_options

FILES = {
    "people.csv": "id,education,sex\n"
    + "".join(f"{i},{1 + i % 16},{('Female', 'Male', 'Male')[i % 3]}\n" for i in range(45_000)),
    "counts.csv": "sex,count\nFemale,33\nMale,67\n",
    "numbers.csv": "letter,count\n1,50\n2,25\n3,17\n4,12\n",
    "moves.csv": "who,place\np,home\nq,out\np,home\nq,out\np,out\nq,home\np,home\n",
}
WAVE = "design --prior counts.csv --utility hamming"
NOISE = (
    "design --prior numbers.csv --epsilon 1.3 --utility squared --outputs 0,1,2,3,4,5 "
    "--constraint unbiased --constraint variance=2 --constraint within=5 -o noise.json"
)
NEEDED = (
    *(EXAMPLES[name] for name in ("design", "apply", "release", "ledger new")),
    "apply mechanism.json people.csv --column sex --drop-all --keep-order -o answers.csv",
    f"{WAVE} --epsilon 0.2 -o first-wave.json",
    f"{WAVE} --epsilon 0.4 -o second-wave.json",
    NOISE,
    EXAMPLES["ledger stream new"],
    "ledger stream release streams.json --person ann --state out",
)
"""The commands that write what the others read."""
RUN_ELSEWHERE = ("example", "explore")
"""Commands that take seconds and have tests of their own: here their example is parsed."""


def walk(group: click.Group, above: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command with its name as it is typed."""
    for name in sorted(group.list_commands(click.Context(group))):
        command = find_command(name, group)
        if isinstance(command, click.Group):
            yield from walk(command, f"{above}{name} ")
        else:
            yield f"{above}{name}", command


COMMANDS = dict(walk(main))


def options_of(command: click.Command) -> set[str]:
    return {one.opts[-1] for one in command.params if isinstance(one, click.Option)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all that the examples read."""
    place = tmp_path_factory.mktemp("examples")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        for name, text in FILES.items():
            Path(name).write_text(text)
        for line in NEEDED:
            run(*shlex.split(line))
    return place


@pytest.mark.parametrize("name", [name for name in COMMANDS if EXAMPLES[name] not in NEEDED])
def test_the_example_of_a_command_runs_and_its_json_has_the_keys_of_the_schema(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    as_json = "--json" in options_of(COMMANDS[name])
    words = shlex.split(EXAMPLES[name])
    assert words[: len(name.split())] == name.split()
    if name in RUN_ELSEWHERE:
        assert COMMANDS[name].make_context(name, words[1:]).params
        return
    printed = run_fully(*words, *["--json"] * as_json).stdout  # and compared with the schema
    assert ('"format": "pmlopt ' in printed) == as_json


def test_every_kind_of_json_is_in_the_schema_and_a_key_has_one_meaning() -> None:
    kinds = {
        f"pmlopt {kind.value!s}"
        for path in (ROOT / "pmlopt" / "cli").glob("*.py")
        for call in ast.walk(parse_file(path))
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "print_json"
        for kind in ast.walk(call.args[0])
        if isinstance(kind, ast.Constant)
    }
    described = {one["properties"]["format"]["const"] for one in OUTPUT_SCHEMA["oneOf"]}
    # of a release the file itself is printed, which has a format of its own
    assert kinds - {"pmlopt release"} == described - {"pmlopt error"}
    every = OUTPUT_SCHEMA["properties"]
    used = {key for one in OUTPUT_SCHEMA["oneOf"] for key in one["properties"]}
    assert used == set(every)
    assert all(one["description"].endswith(".") for one in every.values())


@pytest.mark.parametrize("content", [
    {"format": "pmlopt streams", "epsilon": 1.0, "level": 0.5, "people": {"ann": 0.5}, "levels": {}},
    {"format": "pmlopt streams", "epsilon": 1.0, "level": 0.5, "people": 1},
    {"format": "pmlopt ledger-check", "holds": True, "level": 1.0, "total": 2.0, "agrees": True},
    [{"format": "pmlopt sweep", "columns": [], "rows": []}],
])  # fmt: skip
def test_other_json_is_refused(content: object) -> None:
    with pytest.raises(AssertionError):
        check_output_schema(content)


def test_every_option_is_in_one_group_and_every_group_is_shown() -> None:
    placed = Counter(name for names in OPTION_GROUPS.values() for name in names.split())
    assert set(placed.values()) == {1}
    known = set().union(*map(options_of, COMMANDS.values()))
    assert known - {"--import", "--only"} == {f"--{name}" for name in placed}
    for name, command in COMMANDS.items():
        groups = group_options(click.Context(command, info_name=f"pmlopt {name}"), command)
        listed = [flag for group in groups.values() for flag, _ in group]
        assert len(listed) == len(set(listed)) == len(options_of(command)) + 1, name


def test_the_help_of_a_long_command_has_groups_and_an_example() -> None:
    text = CliRunner().invoke(main, ["design", "--help-all"]).output
    headings = [line for line in text.splitlines() if line.endswith(" options:")]
    assert headings == [f"{one} options:" for one in OPTION_GROUPS if one != "Inference"] + [
        "Other options:"
    ]
    assert f"Example:\n  pmlopt {EXAMPLES['design'].split(' -o')[0]}" in text
    short = CliRunner().invoke(main, ["check", "--help"]).output
    assert "\nOptions:\n" in short
    assert short.endswith("Example:\n  pmlopt check out\n")


def count_shown(text: str) -> int:
    """How many options a help lists: a line each that begins with a flag."""
    listed = text.partition("ptions:\n")[2].partition("\nExample:")[0]
    return len(re.findall(r"^  (?:-\w, )?--[a-z]", listed, re.MULTILINE))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_help_shows_at_most_twenty_options_and_all_where_asked(name: str) -> None:
    few = CliRunner().invoke(main, [*name.split(), "--help"])
    every = CliRunner().invoke(main, [*name.split(), "--help-all"])
    assert (few.exit_code, every.exit_code) == (0, 0)
    known = len(options_of(COMMANDS[name])) + 1  # --help
    assert count_shown(every.stdout) == known
    assert count_shown(few.stdout) <= min(known, 20)
    assert ("--help-all" in few.stdout) == (count_shown(few.stdout) < known)


def test_there_are_nineteen_commands_in_the_help() -> None:
    named = (
        "answer apply audit bench check design estimate example explore export ledger people-needed"
    )
    named += " problems prove release report solve sweep verify"
    shown = CliRunner().invoke(main, ["--help"]).stdout.partition("Commands:")[2]
    assert re.findall(r"^  ([a-z-]+)", shown, re.MULTILINE) == named.split()
    assert len(named.split()) == 19
    assert main.list_commands(click.Context(main)) == named.split()


def test_nothing_asked_prints_how_to_start() -> None:
    done = CliRunner().invoke(main, [])
    assert (done.exit_code, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert len(lines) == 5
    for line, word in zip(lines[:4], ("release", "check", "design", "audit"), strict=True):
        assert line.startswith(word)
        typed = shlex.split(line.partition("pmlopt ")[2])
        assert COMMANDS[typed[0]].make_context(typed[0], typed[1:], resilient_parsing=True)
    assert "docs/index.md" in lines[4]
    assert (ROOT / "docs" / "index.md").exists()


def test_what_there_is_not_names_the_nearest_and_the_page() -> None:
    done = CliRunner().invoke(main, ["auditt"])
    assert done.exit_code == 2
    assert "did you mean 'audit'? (manual: commands.md)" in done.stderr
    done = CliRunner().invoke(main, ["design", "--utilty", "hamming"])
    assert done.exit_code == 2
    assert "did you mean '--utility'? (manual: commands.md#pmlopt-design)" in done.stderr


def test_every_command_has_an_example_and_a_group_has_none() -> None:
    assert set(EXAMPLES) == set(COMMANDS)
    assert find_example(click.Context(main, info_name="pmlopt")) == ""
