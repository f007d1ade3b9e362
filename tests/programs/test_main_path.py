"""The path of one small design through the package: few functions, each of which runs few times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from call_counts import count_calls, count_files, count_hops, count_stays, list_steps

from pmlopt import LDP, PML, ExpectedGain, KLBall, Prior, design, load, solve
from pmlopt.data.mechanism import Mechanism
from pmlopt.model.privacy.mean_bounds import MeanBounds
from pmlopt.programs.exact.rounding import has_exact_rows

MAX_FUNCTIONS = 218
"""Of the second design of a process, comprehensions included. It may only shrink."""

MAX_FILES = {PML: 29, LDP: 31}
"""LDP has a closed form of its own, and a support function that cvxpy's names are looked up for."""


@pytest.mark.parametrize("utility", ["hamming", ExpectedGain(np.eye(4))])
@pytest.mark.parametrize("privacy", [PML, LDP])
def test_a_design_of_four_letters_is_a_short_path(
    tmp_path: Path, privacy: type[PML | LDP], utility: Any
) -> None:
    path = tmp_path / "design.json"

    def run() -> None:
        requirement = privacy(1.0)
        solve(design(Prior([0.4, 0.3, 0.2, 0.1]), requirement, utility)).save(path)

    run()
    calls = count_calls(run)
    assert len(calls) <= MAX_FUNCTIONS
    assert count_files(calls) <= MAX_FILES[privacy]
    assert load(path).certificate.verify()


COUNTS = {"never": 40, "monthly": 30, "weekly": 20, "daily": 10}


def test_the_example_of_the_readme_is_six_hops_from_the_solver() -> None:
    def run() -> None:
        result = solve(design(Prior.from_counts(COUNTS), PML(0.5), "hamming"))
        assert (result.method, round(result.value, 4)) == ("highs-small", 0.4065)

    run()
    steps = list_steps(run)
    assert 0 < count_hops(steps) <= 6
    assert len({file for file, _, _ in steps}) <= 26


def test_a_design_over_a_ball_runs_through_forty_files() -> None:
    prior = Prior.from_counts(COUNTS)
    program = design(prior, PML(0.5, over=KLBall(prior, 0.05)), "hamming")
    assert len({file for file, _, _ in list_steps(lambda: solve(program))}) <= 40


@pytest.mark.parametrize("kind", ["mapping", "Series", "DataFrame"])
def test_a_prior_that_is_given_is_read_once(kind: str) -> None:
    shares: Any = {label: count / 100 for label, count in COUNTS.items()}
    if kind != "mapping":
        pandas = pytest.importorskip("pandas")
        shares = pandas.Series(shares)
        shares = shares if kind == "Series" else shares.rename_axis("answer").reset_index()
    assert Prior(shares).labels == tuple(COUNTS)
    stays, climbs = count_stays(lambda: Prior(shares))
    assert stays <= 25
    assert climbs <= 6


def test_a_repaired_mechanism_is_not_validated_again_and_bounds_are_fitted_once() -> None:
    """The repair leaves exact rows; the prior's array and the table are copied and checked before."""
    program = design(np.array([0.4, 0.3, 0.2, 0.1]), PML(1.0), ExpectedGain(np.eye(4)))
    assert has_exact_rows(solve(program).matrix)
    calls = count_calls(lambda: solve(program))
    times = {name.rpartition(" ")[0]: count for (_, name), count in calls.items()}
    assert Mechanism.__init__.__qualname__ not in times
    assert times.get(MeanBounds._fit_bounds.__qualname__, 0) <= 1
    assert program.privacy.bounds_for(program.prior) is program.privacy.bounds_for(program.prior)  # type: ignore[attr-defined]


def test_bounds_follow_the_prior_and_the_level() -> None:
    requirement, even, skewed = PML(5.0), Prior([0.5, 0.5]), Prior([0.9, 0.1])
    assert requirement.bounds_for(even)[0].exponent == pytest.approx(np.log(2), abs=1e-15)
    assert requirement.bounds_for(skewed)[0].exponent == pytest.approx(np.log(10), abs=1e-15)
    assert requirement.with_epsilon(0.25).bounds_for(skewed)[0].exponent == 0.25
    assert requirement.bounds_for(skewed)[0].exponent == pytest.approx(np.log(10), abs=1e-15)
