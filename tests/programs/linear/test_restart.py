"""Where the interior point starts again: a neighbour's point, pushed inside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pmlopt import LDP, LIP, PML, ExpectedGain, L1Ball, MaximalLeakage, MinimumMass, Prior, design, solve
from pmlopt.model.privacy import Requirement
from pmlopt.programs.certificate import Restart
from pmlopt.solvers.structured.points import pushed

PRIOR = Prior(np.random.default_rng(3).dirichlet(np.full(30, 2.0)))
GAINS = np.random.default_rng(4).random((30, 30))
SMALL = float(PRIOR.pmf.min())


def kinds(epsilon: float) -> list[Requirement]:
    return [
        PML(epsilon),
        LDP(epsilon),
        LIP(epsilon, 2 * epsilon),
        PML(epsilon, over=L1Ball(PRIOR, SMALL)),
        PML(epsilon, over=MinimumMass(30, 0.5 / 30)),
        PML(epsilon, over=L1Ball(PRIOR, 0.1)),
        MaximalLeakage(epsilon),
    ]


@pytest.mark.parametrize("kind", range(7))
@pytest.mark.parametrize("ahead", [1.1, 0.9])
def test_a_neighbours_point_is_pushed_strictly_inside(kind: int, ahead: float) -> None:
    before = solve(design(PRIOR, kinds(1.0)[kind], ExpectedGain(GAINS)), "structured")
    task = design(PRIOR, kinds(ahead)[kind], ExpectedGain(GAINS)).task()
    assert task is not None
    start = pushed(task, before.restart.arrays)
    assert start is not None
    assert min(part.min() for part in (*start.slacks.values(), *start.duals.values())) > 0
    np.testing.assert_allclose(start.mechanism.sum(axis=1), 1, atol=1e-12)
    matrix, excess = start.parts(None, None)
    if task.block.capped:
        np.testing.assert_allclose(
            matrix + start.slacks["below"], np.tile(task.block.upper @ start.scalars, (30, 1))
        )
    left = task.column_rows(matrix, excess, start.scalars)
    np.testing.assert_allclose(left, start.slacks.get("spare", np.zeros_like(left)), atol=1e-12)


@pytest.mark.parametrize("kind", range(7))
def test_a_start_changes_nothing_but_the_way(kind: int) -> None:
    before = solve(design(PRIOR, kinds(1.0)[kind], ExpectedGain(GAINS)), "structured")
    program = design(PRIOR, kinds(1.05)[kind], ExpectedGain(GAINS))
    warm = solve(program, "structured", warm_start=before)
    cold = solve(program, "structured", warm_start=False)
    assert (warm.warm_started, cold.warm_started) == (True, False)
    assert warm.value == pytest.approx(cold.value, abs=1e-8)
    assert warm.certificate.verify()


@pytest.mark.parametrize(("taken", "warm"), [((30, 0), True), ((30, 30), True), ((30, 31), False)])
def test_a_start_that_has_not_paid_is_not_taken_again(taken: tuple[int, int], warm: bool) -> None:
    before = solve(design(PRIOR, PML(1.0), ExpectedGain(GAINS)), "structured").restart
    arrays = {**before.arrays, "taken": np.array(taken, float)}
    result = solve(
        design(PRIOR, PML(1.1), ExpectedGain(GAINS)), "structured", warm_start=Restart("structured", arrays)
    )
    assert result.warm_started is warm
    counts = list(taken)
    counts[warm] = result.iterations or 0
    assert result.restart.arrays["taken"].tolist() == counts


def test_what_does_not_fit_is_no_start() -> None:
    task = design(PRIOR, PML(1.0), ExpectedGain(GAINS)).task()
    assert task is not None
    arrays = solve(design(PRIOR, PML(1.0), ExpectedGain(GAINS[:, :20])), "structured").restart.arrays
    assert pushed(task, arrays) is None
    assert pushed(task, {"matrix": np.full((30, 30), 1 / 30)}) is None
    other = Restart("structured", {"matrix": np.full((30, 30), 1 / 30)})
    result = solve(design(PRIOR, PML(1.0), ExpectedGain(GAINS)), "structured", warm_start=other)
    assert not result.warm_started


@pytest.mark.parametrize("solver", ["highs", "structured"])
@pytest.mark.parametrize("spoil", ["text", "short", "nan", "deep", "missing"])
def test_a_spoilt_restart_is_no_start(solver: str, spoil: str) -> None:
    n = 6
    prior, gains = Prior.uniform(n), GAINS[:n, :n]
    program = design(prior, PML(0.6), ExpectedGain(gains))
    good = solve(program, solver).restart
    changed: dict[str, np.ndarray[Any, Any]] = {}
    for name, array in good.arrays.items():
        if name == "matrix":
            continue
        changed[name] = {
            "text": array.astype(str),
            "short": array[:-1],
            "nan": np.full(array.shape, np.nan),
            "deep": array[None],
            "missing": np.zeros(0),
        }[spoil]
    assert changed
    if spoil == "missing":
        changed = {}
    result = solve(program, solver, warm_start=Restart(solver, {"matrix": good.arrays["matrix"], **changed}))
    assert result.status == "optimal"
    assert result.value == pytest.approx(solve(program, solver).value, abs=1e-8)
