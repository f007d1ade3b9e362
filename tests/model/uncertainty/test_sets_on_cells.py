"""Sets of priors that a group leaves as they are: on its cells they have the same least means."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

import numpy as np
import pytest

from pmlopt import (
    PML,
    ConvexHull,
    ExpectedLoss,
    KLBall,
    Polytope,
    Prior,
    WassersteinBall,
    design,
    intersection,
    solve,
)
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.data.symmetry import InvariantPrior, reflection, rotation
from pmlopt.errors import PrivacyError
from pmlopt.model.uncertainty import PriorSet

MASSES = Prior.from_counts([3, 2, 1, 3, 2, 1], labels=range(6))
HALF_TURN = InvariantPrior(MASSES, [rotation(6, 3)])
EQUAL = Prior.uniform(6)
DIHEDRAL = InvariantPrior(EQUAL, [rotation(6), reflection(6)])
DISTANCE = np.minimum(
    np.abs(np.subtract.outer(np.arange(6), np.arange(6))),
    6 - np.abs(np.subtract.outer(np.arange(6), np.arange(6))),
).astype(float)
PRIORS = {"half turn": HALF_TURN, "dihedral": DIHEDRAL}


def list_images(rows: FloatArray, prior: InvariantPrior) -> FloatArray:
    """Rows with all their images under the group."""
    found = {tuple(row) for row in rows.tolist()}
    while True:
        images = {tuple(np.array(row)[moved].tolist()) for row in found for moved, _ in prior.moves}
        if images <= found:
            return np.array(sorted(found))
        found |= images


def make_polytope(prior: InvariantPrior, seed: int = 0) -> PriorSet:
    rng = np.random.default_rng(seed)
    rows = list_images(rng.normal(size=(2, 6)), prior)
    return Polytope(rows, (rows @ prior.pmf + 0.05).round(9))


def make_hull(prior: InvariantPrior, seed: int = 0) -> PriorSet:
    laws = np.random.default_rng(seed).multinomial(1000, prior.pmf, size=2) / 1000
    return ConvexHull(list_images(np.vstack([laws, prior.pmf]), prior))


SETS: Mapping[str, Callable[[InvariantPrior], PriorSet]] = {
    "polytope": make_polytope,
    "hull": make_hull,
    "wasserstein": lambda prior: WassersteinBall(prior.listed(), DISTANCE, 0.2),
    "intersection": lambda prior: intersection(
        KLBall(prior.listed(), 0.05),
        make_polytope(prior),
        WassersteinBall(prior.listed(), DISTANCE, 0.3),
    ),
}
by_set = pytest.mark.parametrize("name", SETS)
by_prior = pytest.mark.parametrize("group", PRIORS)


@by_set
@by_prior
def test_cells_have_the_least_means_of_letters(name: str, group: str) -> None:
    prior, rng = PRIORS[group], np.random.default_rng(7)
    over, space = SETS[name](prior), prior.make_pairs()
    slack = 2e-7 if name == "intersection" else 1e-14
    for place in range(len(space.orbits.outputs)):
        cells = space.get_cells(place)
        on_cells = over.on_cells(cells)
        assert on_cells is not None
        assert cells.classes is not None
        values = rng.uniform(size=(cells.size, 4))
        least, wanted = on_cells.min_mean(values), over.min_mean(values[cells.classes])
        assert least == pytest.approx(wanted, abs=slack + 1e-14)
        # the proofs of designs by orbits rest on bounds in whole numbers, which no prior is below
        whole = np.array([[int(v * 2**40)] for v in values[:, 0].tolist()], dtype=object)
        (bound,), unit = on_cells.min_mean_scaled(whole)
        member = over.project_to_rationals(over.minimizer(values[cells.classes][:, 0]))
        mean = sum(q * v for q, v in zip(member, whole[cells.classes][:, 0], strict=True))
        assert Fraction(bound, unit) <= mean
        assert float(Fraction(bound, unit) / 2**40) == pytest.approx(least[0], abs=slack + 1e-12)


@by_set
def test_designs_by_orbits_are_those_on_letters(name: str) -> None:
    prior, loss = HALF_TURN, ExpectedLoss(lambda x, y: float(DISTANCE[x, y]))
    privacy = PML(0.4, over=SETS[name](prior))
    found = solve(design(prior, privacy, loss))
    assert found.certificate.verify()
    assert found.gap <= 1e-6
    wanted = solve(design(prior.listed(), privacy, loss))
    assert found.value == pytest.approx(wanted.value, abs=2e-6)


def test_a_set_that_the_group_moves_is_refused() -> None:
    line = np.abs(np.subtract.outer(np.arange(6.0), np.arange(6.0)))
    moved = [
        Polytope([[1, 0, 0, 0, 0, 0]], [0.4]),
        ConvexHull([[0.25, 0.2, 0.05, 0.25, 0.2, 0.05], [0.2, 0.2, 0.2, 0.2, 0.1, 0.1]]),
        WassersteinBall(MASSES, line, 0.2),
        WassersteinBall([0.2, 0.2, 0.2, 0.2, 0.1, 0.1], DISTANCE, 0.2),
        intersection(KLBall(MASSES, 0.1), Polytope([[1, 0, 0, 0, 0, 0]], [0.4])),
    ]
    for over in moved:
        with pytest.raises(PrivacyError, match="not invariant"):
            design(HALF_TURN, PML(0.4, over=over), "hamming").problem  # noqa: B018
    other = Polytope([[1, 0, 0]], [0.4])
    with pytest.raises(PrivacyError, match="on letters one by one"):
        design(HALF_TURN, PML(0.4, over=other), "hamming").problem  # noqa: B018


@pytest.mark.parametrize(
    "over",
    [
        # the second row follows from the first and the sum of all probabilities
        Polytope([[1, 1, 1, 0, 0, 0], [-1, -1, -1, 0, 0, 0]], [0.6, -0.4]),
        # at most a third is less than a half
        Polytope([[3, 0, 0, 0, 0, 0], [0, 0, 0, 3, 0, 0], [1, 0, 0, 0, 0, 0]], [1, 1, 0.5]),
    ],
    ids=["sum", "thirds"],
)
def test_rows_that_only_imply_their_images_are_invariant(over: Polytope) -> None:
    cells = HALF_TURN.make_pairs().get_cells(0)
    on_cells = over.on_cells(cells)
    assert on_cells is not None
    values = np.random.default_rng(3).uniform(size=(cells.size, 3))
    assert cells.classes is not None
    assert on_cells.min_mean(values) == pytest.approx(
        over.min_mean(values[cells.classes]), abs=1e-13
    )
