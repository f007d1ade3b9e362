"""Former names of commands: they print what the new ones print, and one line on these."""

from __future__ import annotations

import json
import math
import shlex
from pathlib import Path

import pytest
from commands import FORMER_LINE, run_line

BOUND = "--letters 5 --epsilon 1 --target 1.1 --confidence-delta 1e-6"
SAME = {
    "compose first.csv second.csv --prior prior.csv": "audit first.csv second.csv --prior prior.csv",
    "compose first.csv first.csv --prior prior.csv --json":
        "audit first.csv first.csv --prior prior.csv --json",
    f"sample-size {BOUND}": f"people-needed --for-bound {BOUND}",
    f"sample-size {BOUND} --json": f"people-needed --for-bound {BOUND} --json",
    "noise-table counts.csv -o table.csv": "export counts.csv --to ptable -o table.csv",
    "noise-table counts.csv --keys 64 -o t.csv": "export counts.csv --to ptable --keys 64 -o t.csv",
    "noisy-answer people.csv --count a=yes,no --epsilon 1 --seed 3 -o told.csv":
        "answer people.csv --count a=yes,no --epsilon 1 --seed 3 -o told.csv",
    "stream new moves.csv --person-column who --column at --epsilon 1 -o s.json":
        "ledger stream new moves.csv --person-column who --column at --epsilon 1 -o s.json",
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


@pytest.mark.parametrize("old", SAME)
def test_a_former_name_prints_what_the_new_one_prints(old: str, folder: Path) -> None:
    former, new = run_line(old), run_line(SAME[old])
    assert former.stdout == new.stdout
    assert FORMER_LINE.match(former.stderr)
    assert FORMER_LINE.sub("", former.stderr) == new.stderr


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
