"""Sets of priors of at least some entropy: against convex programs, their ends, and designs by orbits."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from oracles.designs import FloatArray
from oracles.divergence_balls import KINDS
from oracles.set_comparisons import compare_columns, compare_designs
from scipy import optimize

from pmlopt import (
    LDP,
    PML,
    AllPriors,
    ChiSquareBall,
    CoordinateLoss,
    EntropySet,
    ExpectedGain,
    IIDPrior,
    KLBall,
    LikelihoodRegion,
    Prior,
    design,
    solve,
)
from pmlopt.data.symmetry import InvariantPrior, reflection
from pmlopt.errors import PrivacyError
from pmlopt.model.uncertainty import PriorSet
from pmlopt.model.uncertainty.support_functions import bound_gain_by_measures, sharpen_measures
from pmlopt.testing import check_prior_set

GAINS = ExpectedGain(np.random.default_rng(0).normal(size=(3, 3)))


def test_columns_have_the_means_of_convex_programs() -> None:
    compare_columns(KINDS["entropy"], 0, 12)


def test_many_columns_have_the_means_of_convex_programs() -> None:
    compare_columns(KINDS["entropy"], 1, 30)


def test_a_design_is_that_of_cutting_planes() -> None:
    compare_designs(KINDS["entropy"], 2, 1)


def test_a_design_around_a_prior_far_outside_is_proved() -> None:
    # the exponential cones of a small set leave a solver three digits
    prior = np.array([0.00447294, 0.00099977, 0.99452729])
    gains = np.array(
        [[-0.957817, 1.548771, 0.905958], [-0.468153, -1.648773, -0.560889], [1.462665, -0.115642, -0.705499]]
    )  # fmt: skip
    found = solve(
        design(prior, PML(0.72946864, over=EntropySet(3, 1.0985122886681098)), ExpectedGain(gains))
    )
    assert found.status.value == "optimal"
    assert found.certificate.verify()


def test_measures_are_sharp_from_any_start() -> None:
    rng = np.random.default_rng(5)
    for _ in range(5):
        p, gains, ratio = rng.dirichlet(np.ones(4)), rng.normal(size=(4, 2)), rng.uniform(0.3, 0.9)
        hull = rng.dirichlet(np.ones(4), size=3)

        def find_worst(column: FloatArray, laws: FloatArray = hull) -> FloatArray:
            return np.asarray(laws[(laws @ column).argmin()])

        nothing = np.zeros((4, 2))
        found = sharpen_measures(nothing, gains - gains.min(), p, gains, ratio, find_worst)
        proved = bound_gain_by_measures(found, found.sum(axis=0), p, gains, ratio)
        # the largest gain of a column with <p, v> = 1 and entries up to t: its program
        best = max(
            -optimize.linprog(
                np.append(-p * gain, 0.0),
                np.block([[np.eye(4), -np.ones((4, 1))], [-hull, np.full((3, 1), ratio)]]),
                np.zeros(7),
                np.append(p, 0.0)[None],
                [1.0],
            ).fun
            for gain in gains.T
        )
        assert best - 1e-12 <= proved <= best + 1e-8


def test_all_forms_agree() -> None:
    for entropy in (0.3, 1.0, 1.38):
        check_prior_set(EntropySet(4, entropy), instances=1)


def test_it_has_the_priors_of_its_entropy() -> None:
    vague = EntropySet(["a", "b"], 0.5)
    assert vague.contains(Prior([0.2, 0.8], ["a", "b"]))  # 0.5004 nats
    assert not vague.contains(Prior([0.199, 0.801], ["a", "b"]))  # 0.4990 nats
    with pytest.raises(PrivacyError):
        vague.contains(Prior([0.2, 0.8], ["b", "a"]))


def test_at_log_n_it_is_the_uniform_prior_and_at_0_all_priors() -> None:
    uniform = Prior.uniform(3)
    for size in (2, 3, 5, 6, 7, 100):
        law = EntropySet(size, math.log(size)).simplify()
        assert isinstance(law, np.ndarray)
        assert np.array_equal(law, Prior.uniform(size).pmf)
        # one unit less is a set of many priors: its radius is no rounding
        near = EntropySet(size, math.nextafter(math.log(size), 0))
        assert 0 < near.radius < 1e-14
        assert near.simplify() is near
    assert EntropySet(3, 0.0).simplify() == AllPriors(3)
    for entropy, other in ((math.log(3), PML(0.4)), (0.0, LDP(0.4))):
        expected = solve(design(uniform, other, GAINS))
        found = solve(design(uniform, PML(0.4, over=EntropySet(3, entropy)), GAINS))
        assert found.value == pytest.approx(expected.value, abs=1e-9)
        assert found.certificate.verify()


@pytest.mark.parametrize(
    ("size", "entropy", "words"),
    [
        (3, -0.1, "at least 0"),
        (3, 1.1, "the set is empty"),
        (3, math.nan, "finite"),
        (0, 0.0, "the size"),
        (2.5, 0.0, "the size"),
        (["a", "a"], 0.1, "labels"),
    ],
)
def test_what_is_no_entropy_of_a_prior_is_refused(size: object, entropy: float, words: str) -> None:
    with pytest.raises(PrivacyError, match=words):
        EntropySet(size, entropy)  # type: ignore[arg-type]


def test_designs_by_orbits_are_those_on_listed_letters() -> None:
    """Records of three bits: the design of eight letters, once by types and once letter by letter."""
    bits = IIDPrior([0.6, 0.4], 3)
    letters = np.array([*itertools.product((0, 1), repeat=3)])
    p = np.array([0.6, 0.4])[letters].prod(axis=1)
    loss = CoordinateLoss([[0, 1], [1, 0]])
    gains = -np.abs(letters[:, None, :] - letters[None, :, :]).sum(axis=2).astype(float)
    vague = EntropySet(8, 1.9)
    orbits = solve(design(bits, PML(1.0, over=vague), loss))
    whole = solve(design(p, PML(1.0, over=vague), ExpectedGain(gains)))
    assert orbits.certificate.verify()
    assert orbits.value == pytest.approx(-whole.value, abs=1e-6)


@pytest.mark.parametrize("kind", [KLBall, ChiSquareBall, LikelihoodRegion])
def test_a_ball_around_an_invariant_centre_has_cells(kind: type[PriorSet]) -> None:
    row = InvariantPrior(Prior.from_counts([1, 2, 4, 2, 1]), [reflection(5)])
    center = np.array([1, 2, 4, 2, 1]) / 10
    gains = -np.abs(np.subtract.outer(np.arange(5), np.arange(5))).astype(float)
    over = kind(center, 0.05)  # type: ignore[call-arg]
    orbits = solve(design(row, PML(0.5, over=over), ExpectedGain(gains)))
    whole = solve(design(center, PML(0.5, over=over), ExpectedGain(gains)))
    assert orbits.certificate.verify()
    assert orbits.value == pytest.approx(whole.value, abs=1e-6)
    with pytest.raises(PrivacyError, match="not invariant"):
        design(row, PML(0.5, over=kind([0.2, 0.2, 0.3, 0.2, 0.1], 0.05)), ExpectedGain(gains))  # type: ignore[call-arg]
