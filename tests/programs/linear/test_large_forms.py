"""Closed forms of many letters are found as those of few, without matrices that are not needed."""

from typing import Any

import numpy as np
import pytest
from scipy import optimize

from pmlopt import LDP, PML, ExpectedLoss, Prior, design, solve
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.model.closed_forms.catalogue import build_closed_forms, is_within_limits
from pmlopt.model.utility.linear import build_best_deterministic
from pmlopt.programs.linear import color_refinement
from pmlopt.programs.linear.formulation import (
    _keeps_labels,
    _may_be_deterministic,
    _needs_merged_outputs,
    find_known_optimum,
)
from pmlopt.programs.linear.program import LinearDesign

SIZE = 230


def list_tables() -> list[FloatArray]:
    """List losses with few pairs that differ from the others of their letter, and one with many."""
    random = np.random.default_rng(0)
    plain = 1 - np.eye(SIZE)
    weighted = plain * random.random(SIZE)[:, None]
    moved = 1 - np.roll(np.eye(SIZE), 1, axis=1)
    scattered = np.where(random.random((SIZE, SIZE)) < 0.01, random.random((SIZE, SIZE)), 1.0)
    return [plain, weighted, moved, scattered, random.random((SIZE, SIZE))]


@pytest.mark.parametrize("place", range(5))
def test_labels_are_kept_where_no_assignment_gains_more(place: int) -> None:
    table = list_tables()[place]
    prior = Prior.uniform(SIZE)
    program = design(prior, PML(1.0), ExpectedLoss(table))
    assert isinstance(program, LinearDesign)
    for _, form in build_closed_forms(prior, PML(1.0)):
        gains = (prior.pmf[:, None] * form.matrix).T @ program.centered_gains
        kept = _keeps_labels(prior.pmf, form.matrix, program.centered_gains)
        best = bool((gains.diagonal() >= gains.max(axis=1) - 1e-15).all())
        # many pairs that differ are left to an assignment
        assert kept == (best and place < 4)
        assert kept or place > 0


@pytest.mark.parametrize("privacy", [PML(1.0), PML(5.5), LDP(1.0)])
def test_a_deterministic_form_is_left_out_only_where_it_breaks_a_limit(privacy: PML | LDP) -> None:
    random = np.random.default_rng(1)
    for _ in range(20):
        prior = Prior(random.dirichlet(np.full(6, 0.5)))
        program = design(prior, privacy, ExpectedLoss(random.random((6, 4))))
        assert isinstance(program, LinearDesign)
        form = build_best_deterministic(program.centered_gains)
        assert _may_be_deterministic(program) >= is_within_limits(prior, privacy, form)
        # under PML the least likely output leaks most
        if isinstance(privacy, PML):
            assert _may_be_deterministic(program) == is_within_limits(prior, privacy, form)


def test_classes_are_not_looked_for_where_a_closed_form_is_optimal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = []
    look = color_refinement._hash_rows

    def count(*given: Any) -> Any:
        calls.append(given)
        return look(*given)

    monkeypatch.setattr(color_refinement, "_hash_rows", count)
    program = design(Prior.uniform(SIZE), PML(1.0), "hamming")
    result = solve(program)
    assert (result.status.value, result.solver, calls) == ("optimal", "closed-form", [])
    named = solve(program, "color-refinement")
    assert named.solver == "color-refinement"
    assert calls
    assert named.value == pytest.approx(result.value, abs=1e-9)


def test_thousands_of_letters_have_a_closed_form_within_the_rounding_of_sums() -> None:
    """The bound of 4,000 letters and more allows for more rounding than what is looked for."""
    program = design(Prior.uniform(4_000), PML(1.0), "hamming")
    assert isinstance(program, LinearDesign)
    known = find_known_optimum(program)
    assert known is not None
    assert known.name == "uniform"
    assert known.value == pytest.approx(1 - np.e / 4_000, abs=1e-12)


def test_an_assignment_is_not_looked_for_where_columns_share_their_best_output() -> None:
    """Of numbers on a line each column of the form wants one of few numbers in the middle of its letters."""
    prior = Prior.uniform(SIZE)
    program = design(prior, PML(1.0), "absolute")
    assert isinstance(program, LinearDesign)
    near = 1e-10 * program.scale
    for _, form in build_closed_forms(prior, PML(1.0)):
        gains = (prior.pmf[:, None] * form.matrix).T @ program.centered_gains
        one_to_one = gains[optimize.linear_sum_assignment(gains, maximize=True)].sum()
        assert _needs_merged_outputs(gains, near)
        assert gains.max(axis=1).sum() > one_to_one + near
        assert not _needs_merged_outputs(np.eye(SIZE), near)
        assert not _needs_merged_outputs(np.ones((SIZE, SIZE)), near)
    known = find_known_optimum(program)
    assert known is None or known.name != "uniform"
