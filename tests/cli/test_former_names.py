"""Names of commands that there are not: they tell what to type, with what was given."""

from __future__ import annotations

import json
import math
import shlex
from pathlib import Path

import click
import pytest
from commands import find_command, run_line

from pmlopt.cli.group import COMMANDS
from pmlopt.cli.meant_names import COMMANDS_MEANT
from pmlopt.library.instances import BUILDERS

BOUND = "--letters 5 --epsilon 1 --target 1.1 --confidence-delta 1e-6"
RENAMED = {
    "compose first.csv second.csv --prior prior.csv": "audit first.csv second.csv --prior prior.csv",
    f"sample-size {BOUND}": f"people-needed --for-bound {BOUND}",
    "noise-table counts.csv --keys 64 -o t.csv": "export counts.csv --keys 64 -o t.csv --to ptable",
    "noisy-answer people.csv --count a=yes,no --epsilon 1 -o told.csv":
        "answer people.csv --count a=yes,no --epsilon 1 -o told.csv",
    "stream new moves.csv --person-column who --column at --epsilon 1 -o 'my s.json'":
        "ledger stream new moves.csv --person-column who --column at --epsilon 1 -o 'my s.json'",
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("prior.csv").write_text("a,count\nyes,40\nno,60\n")
    Path("first.csv").write_text("truth,yes,no\nyes,0.75,0.25\nno,0.25,0.75\n")
    Path("second.csv").write_text("truth,yes,no\nyes,0.5,0.5\nno,0.25,0.75\n")
    Path("counts.csv").write_text("truth,0,1,2\n1,0.25,0.5,0.25\n")
    Path("people.csv").write_text("a\nyes\nno\nno\n")
    Path("moves.csv").write_text("who,at\np,home\nq,out\np,out\nq,home\n")
    return tmp_path


@pytest.mark.parametrize("old", RENAMED)
def test_a_renamed_command_tells_the_line_to_type_which_runs(old: str, folder: Path) -> None:
    refused = run_line(old, code=2)
    assert f": type pmlopt {RENAMED[old]} (manual: " in refused.stderr
    assert refused.stdout == ""
    run_line(RENAMED[old])


@pytest.mark.parametrize("name", COMMANDS_MEANT)
def test_what_is_meant_has_commands_options_and_families_that_there_are(name: str) -> None:
    told = run_line(f"{name} --json", code=2).stderr
    assert json.loads(told)["exit_code"] == 2
    assert name not in COMMANDS
    for part in COMMANDS_MEANT[name].split("pmlopt ")[1:]:
        words = part.replace(",", " ").split()
        command: click.Command = find_command(words[0])
        if isinstance(command, click.Group) and len(words) > 1 and words[1].isalpha():
            command = find_command(words[1], command)
        known = {flag for one in command.params for flag in one.opts}
        assert {word for word in words if word.startswith("-")} <= known, part
        if words[:2] == ["problems", "new"]:
            assert words[2].replace("-", "_") in BUILDERS


def test_the_level_of_two_equal_releases_is_that_of_theory(folder: Path) -> None:
    """Two answers yes: 0.75^2 / (0.4 0.75^2 + 0.6 0.25^2) is the largest lift, of the letter yes."""
    told = run_line("audit first.csv first.csv --prior prior.csv --json").stdout
    shown = json.loads(told)
    assert shown["level"] == pytest.approx(math.log(0.5625 / (0.4 * 0.5625 + 0.6 * 0.0625)))


def test_a_problem_file_is_begun_and_solved(folder: Path) -> None:
    assert "pmlopt solve p.toml" in run_line("problems new least-leakage -o p.toml").stdout
    begun = Path("p.toml").read_text()
    assert (
        "0.693147" in run_line("solve p.toml").stdout
    )  # log 2: right about the letter of mass 1/2
    assert "is there already" in run_line("problems new design -o p.toml", code=2).stderr
    assert Path("p.toml").read_text() == begun


@pytest.mark.parametrize("line", [
    "audit first.csv second.csv --prior prior.csv --epsilon 1",
    "audit first.csv second.csv --prior prior.csv --no-header",
    "export first.csv --keys 4 -o t.js",
    "export counts.csv --to ptable --bits 4 -o t.csv",
    "people-needed --letters 5",
    "people-needed",
    f"people-needed first.csv --for-bound {BOUND}",
    "problems new nothing -o n.toml",
    "problems counting -o n.toml",
    "problems new design -o n.csv",
    "report first.csv --registry",
])  # fmt: skip
def test_what_does_not_go_together_is_refused(line: str, folder: Path) -> None:
    before = {path.name for path in folder.iterdir()}
    refused = run_line(line, code=2)
    assert refused.stderr.strip()
    assert {path.name for path in folder.iterdir()} == before, shlex.split(line)
