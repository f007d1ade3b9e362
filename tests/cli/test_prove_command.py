"""`pmlopt prove` writes the proof of a saved result, and `pmlopt verify --vipr` gives it to a checker."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from documents import ROOT

from pmlopt import PML, Mechanism, Prior, design, solve
from pmlopt.cli import main

CHECKER = shlex.join([sys.executable, str(ROOT / "tests" / "oracles" / "vipr.py")])


def called(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(one) for one in arguments])


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "mechanism.json"
    solve(design(Prior([0.5, 0.3, 0.2], ["a", "b", "c"]), PML(0.4), "hamming")).save(path)
    return path


def test_a_proof_is_written_and_accepted_by_a_checker(saved: Path, tmp_path: Path) -> None:
    folder = tmp_path / "proof"
    found = called("prove", saved, "-o", folder)
    assert found.exit_code == 0, found.output
    assert "No mechanism with these outputs that meets the requirement" in " ".join(
        found.output.split()
    )
    verdict = called("verify", folder, "--vipr", CHECKER)
    assert verdict.exit_code == 0, verdict.output
    assert verdict.output.count("accepted") == 2


def test_a_changed_certificate_is_refused(saved: Path, tmp_path: Path) -> None:
    folder = tmp_path / "proof"
    called("prove", saved, "-o", folder)
    path = folder / "optimum.vipr"
    path.write_text(path.read_text().replace("lin ", "lin 1", 1))
    verdict = called("verify", folder, "--vipr", CHECKER)
    assert verdict.exit_code == 1
    assert "REFUSED" in verdict.output
    assert called("verify", folder / "feasibility.vipr", "--vipr", CHECKER).exit_code == 0


def test_a_saved_result_is_proved_and_checked_in_one_command(saved: Path, tmp_path: Path) -> None:
    found = called("verify", saved, "--vipr", CHECKER, "--json")
    assert found.exit_code == 0, found.output
    verdict = json.loads(found.output)
    assert [verdict["holds"], *(one["holds"] for one in verdict["parts"])] == [True] * 3
    assert list(tmp_path.iterdir()) == [saved]


def test_proofs_print_json_with_exact_ends(saved: Path, tmp_path: Path) -> None:
    found = called("prove", saved, "-o", tmp_path / "proof", "--json")
    data = json.loads(found.output)
    assert set(data["proved"]) == {"feasibility", "optimum"}
    assert "/" in data["exact_value"]
    assert "/" in data["exact_bound"]


@pytest.mark.parametrize(
    "source",
    [
        "print('Verification failed.')",
        "import sys; print('verified'); sys.exit(1)",
        "pass",
        "print('not verified')",
    ],
)
def test_a_checker_that_does_not_state_success_does_not_accept(
    saved: Path, tmp_path: Path, source: str
) -> None:
    script = tmp_path / "checker.py"
    script.write_text(source)
    found = called("verify", saved, "--vipr", shlex.join([sys.executable, str(script)]))
    assert found.exit_code == 1
    assert "REFUSED" in found.output


def test_words_in_the_path_of_a_certificate_do_not_count(saved: Path, tmp_path: Path) -> None:
    folder = tmp_path / "not verified, failed"
    called("prove", saved, "-o", folder)
    assert called("verify", folder, "--vipr", CHECKER).exit_code == 0


def test_what_cannot_be_proved_or_checked_is_bad_input(saved: Path, tmp_path: Path) -> None:
    folder = tmp_path / "proof"
    folder.mkdir()
    cases: list[tuple[tuple[str | Path, ...], str]] = [
        (("prove", saved, "-o", folder), "exists already"),
        (("verify", folder, "--vipr", CHECKER), "has no file *.vipr"),
        (("verify", saved, "--vipr", str(tmp_path / "missing")), "cannot be run"),
        (("verify", saved, "--vipr", " "), "empty command"),
        (("verify", folder), "--vipr CHECKER"),
    ]
    for arguments, words in cases:
        found = called(*arguments)
        assert found.exit_code == 2, found.output
        assert words in " ".join(found.output.split())


def test_a_false_claim_is_not_proved(saved: Path, tmp_path: Path) -> None:
    saved.write_text(saved.read_text().replace('"epsilon": 0.4', '"epsilon": 0.3'))
    found = called("prove", saved, "-o", tmp_path / "proof")
    assert found.exit_code == 2
    assert not (tmp_path / "proof").exists()


def test_a_mechanism_without_claims_has_nothing_to_prove(tmp_path: Path) -> None:
    path = tmp_path / "mechanism.csv"
    solve(design([0.5, 0.5], PML(0.4), "hamming")).save(path)
    found = called("prove", path, "-o", tmp_path / "proof")
    assert found.exit_code == 2
    assert "is no saved result" in found.output
    Mechanism.load(path).save(tmp_path / "bare.json")
    found = called("prove", tmp_path / "bare.json", "-o", tmp_path / "proof")
    assert found.exit_code == 2
    assert "nothing to prove" in found.output
