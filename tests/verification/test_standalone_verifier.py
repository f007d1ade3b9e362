"""What the script that stands on its own does not decide: it names it, and proves nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pmlopt import (
    LDP,
    PMC,
    PML,
    ApproximatePML,
    ChiSquareBall,
    GuessLeakage,
    MaximalAlphaLeakage,
    MetricPrivacy,
    RenyiPML,
    Result,
    Secret,
    SibsonLeakage,
    Vulnerability,
    design,
    least_leakage,
    solve,
    verify_file,
)
from pmlopt.model.privacy import Requirement
from pmlopt.programs.compliance import prove
from pmlopt.verification import verifier

SECRET = Secret([[0.1, 0.2, 0.1], [0.4, 0.1, 0.1]])
P = SECRET.prior

OTHERS: dict[str, Requirement] = {
    "'vulnerability'": Vulnerability(epsilon=0.2),
    "'pmc'": PMC(0.3),
    "'renyi-pml'": RenyiPML(2, 0.3),
    "'sibson-leakage'": SibsonLeakage(2, 0.3),
    "'maximal-alpha-leakage'": MaximalAlphaLeakage(2, 0.3),
    "'guess-leakage'": GuessLeakage(2, 0.1),
    "'metric'": MetricPrivacy(1.0, "absolute"),
    "'approximate-pml'": ApproximatePML(0.5, 0.1),
    "'all-of'": PML(0.3) & LDP(0.5),
    "budgets by letter": PML([0.3, 0.4, 0.3]),
    "about a secret": PML(0.3, about=SECRET),
    "'chi-square-ball'": PML(0.3, over=ChiSquareBall(P, 0.05)),
}


def refused_by_script(result: Result[Any], path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The words of the script for a file that `verify_file` finds true."""
    result.save(path)
    assert verify_file(path).holds
    capsys.readouterr()
    check: Any = verifier.main  # which has no types
    assert check(str(path)) == 2
    return capsys.readouterr().out


@pytest.mark.parametrize("words", OTHERS)
def test_the_script_names_the_requirements_that_it_does_not_decide(
    words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = solve(design(P, OTHERS[words], "hamming"))
    told = refused_by_script(result, tmp_path / "result.json", capsys)
    assert "nothing is proved" in told
    assert words in told


def test_the_script_names_the_kinds_of_results_that_it_does_not_decide(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for kind, program in {
        "'least-epsilon'": least_leakage(P, LDP, "hamming", 0.3),
    }.items():
        told = refused_by_script(solve(program), tmp_path / "result.json", capsys)
        assert f"results of the kind {kind} are not proved" in told


def test_the_script_proves_what_a_given_mechanism_leaks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "given.json"
    prove(P, PML(1.2), [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]]).save(path)
    data = json.loads(path.read_text())
    check: Any = verifier.main
    assert check(str(path)) == 0
    assert "proved: the 3 x 3 matrix keeps pml of 1.2 nats" in capsys.readouterr().out
    result, record = data["metadata"], data["metadata"]["certificate"]
    for owner, key, value, code in (
        (record["privacy"], "epsilon", 0.5, 1),
        (record, "value", record["value"] - 1e-6, 1),
        (result, "value", record["value"] - 1e-6, 1),
        (result, "level", result["level"] - 1e-6, 1),
        (record, "kind", "linear", 2),
        (record, "bound", 0.1, 2),
        (result, "gap", 0.0, 2),
    ):
        kept, owner[key] = owner[key], value
        path.write_text(json.dumps(data))
        assert check(str(path)) in ((code,) if code == 1 else (1, 2, 3)), key
        owner[key] = kept
