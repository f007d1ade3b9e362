"""Designs on tuples under PML with outputs that come in as they are needed."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from pmlopt import LDP, PML, ExpectedGain, ExpectedLoss, Prior, design, solve
from pmlopt.errors import SolverUnavailableError
from pmlopt.programs.linear import output_generation
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.solvers.structured.block_program import BlockLP
from pmlopt.solvers.structured.interior_point import InteriorPointResult, follow_central_path
from pmlopt.solvers.structured.smoothed_prices import RowPrices, find_row_prices
from pmlopt.utility import SumOfParts


def on_tuples(shape: tuple[int, ...], epsilon: float, seed: int = 0) -> LinearDesign:
    """Return a design for dependent columns with a sum of losses: distances, and equality for the last."""
    rng = np.random.default_rng(seed)
    law = np.zeros(shape)
    for weight in rng.random(3):  # a mixture of products
        part = np.array(weight)
        for size in shape:
            part = np.multiply.outer(part, rng.dirichlet(np.ones(size)))
        law += part
    parts = [ExpectedLoss(_distance) for _ in shape[:-1]]
    labels = list(product(*map(range, shape)))
    utility = SumOfParts(*parts, ExpectedLoss(_differs))
    program = design(Prior(law.ravel() / law.sum(), labels), PML(epsilon), utility)
    assert isinstance(program, LinearDesign)
    return program


def _distance(x: float, y: float) -> float:
    return abs(x - y) / 4


def _differs(x: float, y: float) -> float:
    return float(x != y)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 2.5])
def test_the_value_is_that_of_all_outputs_at_once(
    monkeypatch: pytest.MonkeyPatch, epsilon: float
) -> None:
    # three outputs at first, so that most of those that are used come in by their prices
    def find_few(*given: Any) -> RowPrices:
        rows = find_row_prices(*given)
        return rows._replace(likely=rows.values <= np.partition(rows.values, 2)[2])

    monkeypatch.setattr(output_generation, "find_row_prices", find_few)
    program = on_tuples((5, 4, 3), epsilon)
    found, other = solve(program, "output-generation"), solve(program, "highs")
    assert found.status == "optimal"
    assert found.value == pytest.approx(other.value, abs=1e-7 * program.scale)
    assert found.certificate.verify()


def test_random_gains_have_the_value_of_the_interior_point() -> None:
    rng = np.random.default_rng(5)
    program = design(
        Prior(rng.dirichlet(np.ones(70))), PML(1.0), ExpectedGain(rng.random((70, 90)))
    )
    found, other = solve(program, "output-generation"), solve(program, "block-ipm")
    assert found.value == pytest.approx(other.value, abs=2e-7 * program.scale)


def test_large_tuples_are_begun_with_few_outputs() -> None:
    program = on_tuples((8, 8, 8), 1.0)
    result = solve(program)
    assert (result.solver, result.status) == ("output-generation", "optimal")
    assert result.certificate.verify()


@pytest.mark.parametrize("epsilon", [2.0, 2.5])
def test_prices_that_are_hardly_told_apart_take_two_programs(
    monkeypatch: pytest.MonkeyPatch, epsilon: float
) -> None:
    sizes: list[int] = []

    def follow(task: BlockLP, *rest: Any) -> InteriorPointResult:
        sizes.append(task.costs.shape[1])
        return follow_central_path(task, *rest)

    monkeypatch.setattr(output_generation, "follow_central_path", follow)
    steps = np.abs(np.subtract.outer(np.arange(150), np.arange(150))) / 150
    prior = np.random.default_rng(1).dirichlet(np.full(150, 2.0))
    result = solve(design(prior, PML(epsilon), ExpectedLoss(steps)), "output-generation")
    assert result.status == "optimal"
    assert len(sizes) <= 2


def test_a_gap_that_is_allowed_ends_the_search() -> None:
    program = on_tuples((8, 7, 6), 1.0)
    result = solve(program, tolerance=1e-3)
    assert result.gap <= 1e-3 * program.scale
    assert result.value >= result.bound  # of a loss


def test_a_time_limit_ends_with_a_mechanism() -> None:
    result = solve(on_tuples((8, 7, 6), 1.0), "output-generation", time_limit=1e-3)
    assert result.level <= 1.0
    assert result.bound <= result.value


@pytest.mark.parametrize("privacy", [LDP(1.0), PML(0.0)])
def test_other_requirements_have_no_such_prices(privacy: PML | LDP) -> None:
    program = design(Prior([0.5, 0.5]), privacy, ExpectedGain(np.eye(2)))
    with pytest.raises(SolverUnavailableError, match="under PML above 0 nats"):
        solve(program, "output-generation")
