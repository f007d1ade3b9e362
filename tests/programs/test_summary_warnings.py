"""What `summary` warns of, beside what outcomes reveal."""

from __future__ import annotations

from pmlopt import PML, Prior, design, leakage_distortion, solve
from pmlopt.model.queries import ModularSum

PRIOR = Prior({"never": 0.4, "monthly": 0.3, "weekly": 0.2, "daily": 0.1})


def test_values_that_are_never_published_are_a_warning() -> None:
    told = solve(design(PRIOR, PML(0.5), "hamming")).summary().splitlines()
    assert told[-1] == (
        "Warning: 4 values become 2 outputs; the frequencies of 3 of them cannot be estimated: to "
        "estimate them choose estimation-error."
    )


def test_a_design_for_estimation_and_a_query_have_no_such_warning() -> None:
    for program in (
        design(PRIOR, PML(0.5), "estimation-error"),
        leakage_distortion(ModularSum(2, 2), 0.2, 0.5),
    ):
        assert "become" not in solve(program).summary()
