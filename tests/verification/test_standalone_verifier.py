"""What the script that stands on its own does not decide: it names it, and proves nothing."""

from __future__ import annotations

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
    MaximalLeakage,
    MetricPrivacy,
    MutualInformation,
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
        "'sub-convex'": design(P, PML(0.3), MutualInformation()),
        "'sub-convex-cost'": design(P, MaximalLeakage(0.3), MutualInformation()),
        "'least-epsilon'": least_leakage(P, LDP, "hamming", 0.3),
    }.items():
        told = refused_by_script(solve(program), tmp_path / "result.json", capsys)
        assert f"results of the kind {kind} are not proved" in told
