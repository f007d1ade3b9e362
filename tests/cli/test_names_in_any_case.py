"""Names on the command line in any case, and commands that people type and that there are not."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import run

from pmlopt import Mechanism
from pmlopt.cli.group import COMMANDS
from pmlopt.cli.meant_names import COMMANDS_MEANT

DESIGN = ("design", "--epsilon", "1", "--utility", "hamming")


@pytest.fixture
def prior(tmp_path: Path) -> Path:
    (tmp_path / "p.csv").write_text("level,count\nlow,40\nmid,35\nhigh,25\n")
    return tmp_path / "p.csv"


@pytest.mark.parametrize("name", ["ldp", "LDP", "Ldp"])
def test_a_requirement_is_known_in_any_case(tmp_path: Path, prior: Path, name: str) -> None:
    run(*DESIGN, "--prior", prior, "--privacy", name, "-o", tmp_path / "m.npy")
    entry = Mechanism.load(tmp_path / "m.npy").matrix.max()
    assert entry == pytest.approx(2.718281828459045 / (2.718281828459045 + 2), abs=1e-9)


def test_a_constraint_is_known_in_any_case(tmp_path: Path, prior: Path) -> None:
    for name in ("invariant", "Invariant", "INVARIANT"):
        run(*DESIGN, "--prior", prior, "--constraint", name, "-o", tmp_path / f"{name}.json")
        kept = [0.4, 0.35, 0.25] @ Mechanism.load(tmp_path / f"{name}.json").matrix
        assert kept == pytest.approx([0.4, 0.35, 0.25], abs=1e-12)
    assert "did you mean 'invariant'" in run(
        *DESIGN, "--prior", prior, "--constraint", "invarant", code=2
    )


def test_a_command_that_is_none_says_what_to_type() -> None:
    assert "pmlopt design --constraint invariant" in run("pram", code=2)
    assert "did you mean 'design'" in run("desing", code=2)
    assert "the commands are" in run("zzz", code=2)


def test_each_hint_names_a_command() -> None:
    for name, meant in COMMANDS_MEANT.items():
        assert name not in COMMANDS
        assert meant.split()[1].rstrip(",") in COMMANDS


def test_a_sweep_hands_options_to_its_solver(tmp_path: Path, prior: Path) -> None:
    words = (
        "sweep",
        "--prior",
        prior,
        "--epsilon",
        "0.5",
        "--utility",
        "hamming",
        "--solver",
        "scs",
    )
    run(*words, "--solver-option", "eps_abs=1e-9", "--solver-option", "eps_rel=1e-9")
    assert "no_such_option" in run(*words, "--solver-option", "no_such_option=1", "--json", code=3)
    assert "key=value" in run(*words, "--solver-option", "eps_abs", code=2)
