"""Ratio bounds: conformance, what they equal, independent linear programs, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from oracles.designs import linear_program, random_prior
from oracles.ratio_bounds import best_gain, broken_pairs, pairs_of, random_distances, shortest
from scipy.special import xlogy

from pmlopt import (
    LDP,
    LIP,
    PML,
    ApproximatePML,
    ExpectedGain,
    ExpectedLoss,
    GainLeakage,
    InvariantPrior,
    JointLaws,
    MaximalLeakage,
    MetricPrivacy,
    MutualInformation,
    Prior,
    Pufferfish,
    RatioBound,
    Secret,
    closed_forms,
    design,
    solve,
)
from pmlopt.data.symmetry import reflection
from pmlopt.errors import PrivacyError
from pmlopt.model.privacy import Requirement
from pmlopt.model.utility import absolute, hamming
from pmlopt.programs.exact.rounding import (
    is_met_exactly,
    repair_matrix,
    round_exp_down,
    round_rows_to_grid,
    scale_to_integers,
)
from pmlopt.programs.linear import pair_interior_point
from pmlopt.testing import check_requirement

JOINT = np.array([[0.05, 0.1, 0.02, 0.13], [0.2, 0.05, 0.3, 0.15]])
SECRET = Secret(JOINT)
COUNTED = Secret.from_counts([[5, 10, 2, 13], [20, 5, 30, 15]])
TWO_LAWS = Secret(np.array([JOINT, JOINT[:, ::-1]]))
DISTANCES = np.array([[0, 1, np.inf, 5], [1, 0, 2, 2], [np.inf, 2, 0, 1], [5, 2, 1, 0]])
PATH: Any = {("a", "b"): 1.0, ("b", "c"): 2.0, ("c", "d"): 0.5}


def steps(x: int, y: int) -> float:
    return abs(x - y)


ON_FOUR: dict[str, Requirement] = {
    "secret": PML(0.2, about=SECRET),
    "counted secret": PML(0.2, about=COUNTED),
    "two joint laws": PML(0.2, about=TWO_LAWS),
    "pufferfish": Pufferfish(0.3, SECRET),
    "one pair": Pufferfish(0.3, Secret(np.full((3, 4), 1 / 12) * [[1, 2, 1, 0], [1, 1, 1, 1], [1, 0, 1, 2]]),
                           pairs=[(0, 2)]),
    "budgets": PML([0.1, 0.5, 1.0, 0.3]),
    "line": MetricPrivacy(0.4, steps),
    "matrix": MetricPrivacy(0.4, DISTANCES),
    "gains": GainLeakage(0.2, np.array([[1, 0, 0.5, 0], [0, 2, 0, 1], [0.3, 0.3, 0.3, 0.3]])),
    "pairs": RatioBound([[1, 0, 0, 1], [0, 3, 0, 0]], [[1, 1, 1, 1], [1, 1, 1, 0]], 0.1),
    "pairs of their own": RatioBound([[1, 0, 0, 1], [0, 3, 0, 0]], [[1, 1, 0, 0], [1, 1, 1, 0]], [0.1, 0.7]),
    "data and secret": PML(0.9) & PML(0.2, about=SECRET),
    "three": LDP(0.8) & LIP(0.4, 0.5) & MetricPrivacy(0.3, steps),
}  # fmt: skip
PRIOR = SECRET.prior
PRIORS = {"one pair": Prior([0.25, 0.25, 0.25, 0.25])}


@pytest.mark.parametrize("name", ON_FOUR)
def test_conformance_and_the_optimum_of_a_dense_linear_program(name: str) -> None:
    requirement, prior = ON_FOUR[name], PRIORS.get(name, PRIOR)
    check_requirement(requirement, prior, instances=1)
    gains = np.random.default_rng(len(name)).normal(size=(4, 4))
    result = solve(design(prior, requirement, ExpectedGain(gains)))
    assert result.certificate.verify()
    assert result.value == pytest.approx(
        best_gain(prior.pmf, pairs_of(requirement, prior), gains), abs=1e-7
    )
    assert result.bound >= result.value


@pytest.mark.parametrize(
    "utility", [ExpectedLoss(hamming), MutualInformation()], ids=["linear", "convex"]
)
def test_the_data_as_its_own_secret_and_equal_budgets_are_pml(utility: Any) -> None:
    prior = Prior(random_prior(np.random.default_rng(3), 5))
    for epsilon in (0.05, 9.0):
        value = solve(design(prior, PML(epsilon), utility)).value
        for same in (PML(epsilon, about=Secret(np.diag(prior.pmf))), PML([epsilon] * 5)):
            assert solve(design(prior, same, utility)).value == pytest.approx(value, abs=1e-9)


def test_perfect_privacy_where_part_of_the_data_is_independent() -> None:
    """X = (S, U) with U independent of S: all of U can be told [rassouli2018perfect]."""
    counts = np.zeros((2, 2, 3), int)
    counts[0, 0], counts[1, 1] = [2, 2, 2], [5, 5, 5]
    secret = Secret.from_counts(counts.reshape(2, 6))
    result = solve(design(secret.prior, PML(0.0, about=secret), MutualInformation()))
    assert result.certificate.verify()
    assert result.value == pytest.approx(math.log(3), abs=1e-9)


class TestMetric:
    def test_thousands_of_letters_are_refused_at_once(self) -> None:
        apart = np.abs(np.subtract.outer(np.arange(3_001.0), np.arange(3_001.0)))
        requirement, loss = MetricPrivacy(1.0, apart), ExpectedLoss(apart[:, :1])
        with pytest.raises(PrivacyError, match="3,001 letters, more than 3,000, has no designs"):
            design(Prior.uniform(3_001), requirement, loss)

    @pytest.mark.parametrize(("letters", "epsilon"), [(10, 0.3), (30, 1.0), (40, 0.5)])
    def test_on_a_line_it_is_the_geometric_mechanism(self, letters: int, epsilon: float) -> None:
        for p in (
            np.full(letters, 1 / letters),
            random_prior(np.random.default_rng(1), letters, 3.0),
        ):
            result = solve(design(p, MetricPrivacy(epsilon, steps), ExpectedLoss(absolute)))
            known = closed_forms.geometric(letters, epsilon).matrix
            losses = np.abs(np.subtract.outer(np.arange(letters), np.arange(letters)))
            best = float(
                (known.T @ (p[:, None] * losses)).min(axis=1).sum()
            )  # the best remap of each output
            assert result.certificate.verify()
            assert result.gap <= 1e-8
            assert result.value == pytest.approx(best, abs=1e-8)
            if letters == 40 and np.ptp(p) == 0:
                assert result.solver == "closed-form"

    def test_a_graph_protects_along_its_ways_and_one_letter_has_nothing_to_hide(self) -> None:
        labels = ["a", "b", "c", "d"]
        prior = Prior([0.1, 0.2, 0.3, 0.4], labels)
        ways = np.array([[0, 1, 3, 3.5], [1, 0, 2, 2.5], [3, 2, 0, 0.5], [3.5, 2.5, 0.5, 0]])
        graph, matrix = MetricPrivacy(0.5, PATH), MetricPrivacy(0.5, ways)
        assert np.array_equal(graph.for_prior(prior).shortest_paths, ways)
        assert (
            len(graph.for_prior(prior).ratios(prior.pmf).exponents) == 6
        )  # three edges, both ways
        found, same = (
            solve(design(prior, one, ExpectedGain(np.eye(4)))).value for one in (graph, matrix)
        )
        assert found == pytest.approx(same, abs=1e-9)
        for utility in (ExpectedGain([[1.0, 3.0]]), MutualInformation()):
            result = solve(design([1.0], MetricPrivacy(0.5, [[0]]), utility))
            assert result.certificate.verify()
            assert result.gap <= 1e-9

    def test_a_way_that_is_longer_by_rounding_alone_implies_its_ends_and_they_are_checked_all_the_same(
        self,
    ) -> None:
        places = np.array([0.0, 0.1, 0.1 + 0.2, 0.7])
        distance = np.abs(np.subtract.outer(places, places))
        privacy, weights = MetricPrivacy(1.0, distance), np.full(4, 0.25)
        assert len(privacy.ratios(weights).exponents) == 6
        assert len(privacy.required_ratios(weights).exponents) == 12
        short = 2 * (1 - 6e-13)
        kept = MetricPrivacy(1.0, np.array([[0, 1, short], [1, 0, 1], [short, 1, 0]]))
        assert len(kept.ratios(weights[:3]).exponents) == 6

    @pytest.mark.parametrize(
        "distance",
        [
            [[0, 5e-9], [5e-9, 0]],
            [[0, 1e-7, 1e6], [1e-7, 0, 1e6], [1e6, 1e6, 0]],
            [[0, 1, 1], [1, 0, 1e-13], [1, 1e-13, 0]],
            [[0, 1e308, 1e308], [1e308, 0, 1e-300], [1e308, 1e-300, 0]],
        ],
    )
    def test_points_that_are_nearly_one_and_distances_that_differ_by_far(
        self, distance: Any
    ) -> None:
        n = len(distance)
        for epsilon in (1e-6, 1.0):
            privacy = MetricPrivacy(epsilon, distance)
            result = solve(design(Prior.uniform(n), privacy, ExpectedGain(np.eye(n))))
            assert result.certificate.verify()
            assert not broken_pairs(epsilon, distance, result.mechanism.matrix)
            assert not privacy.holds(Prior.uniform(n), np.eye(n))
            assert privacy.level(Prior.uniform(n), np.eye(n)) == math.inf

    def test_levels_of_an_ulp_and_distances_by_name_or_laid_out_by_columns(self) -> None:
        matrix = [[0.5, 0.5], [0.5 - 2.0**-53, 0.5 + 2.0**-53]]
        near = MetricPrivacy(1.0, [[0, 1e-16], [1e-16, 0]])
        assert near.level([0.5, 0.5], matrix) == pytest.approx(2.0**-52 / 1e-16, rel=1e-6)
        line = np.abs(np.subtract.outer([1.0, 2.0, 4.0], [1.0, 2.0, 4.0]))
        named = MetricPrivacy(1.0, "absolute").for_prior(Prior([0.2, 0.3, 0.5], [1, 2, 4]))
        for found in (named, MetricPrivacy(0.5, np.asfortranarray(line))):
            assert np.array_equal(np.asarray(found.distance), line)

    def test_distances_that_cannot_be_meant(self) -> None:
        said: list[tuple[str, Any]] = [
            ("negative", [[0, -1], [-1, 0]]), ("both ways", [[0, 1], [2, 0]]), ("numbers", [[0, 1], [1]]),
            ("merge them", [[0, 0], [0, 0]]), ("matrix", [[0, 1, 2], [1, 0, 1]]),
            ("from itself", [[1, 1], [1, 0]]),
            ("not between letters", {("a", "x"): 1.0}), ("back 5", {("a", "b"): 1.0, ("b", "a"): 5.0}),
            ("absolute, hamming", "euclidean"), ("finite", [[0, math.nan], [math.nan, 0]]),
            ("on 3 letters", np.ones((3, 3)) - np.eye(3)),
        ]  # fmt: skip
        prior, gain = Prior([0.5, 0.5], ["a", "b"]), ExpectedGain(np.eye(2))
        for words, distance in said:
            with pytest.raises(PrivacyError, match=words):
                design(prior, MetricPrivacy(1.0, distance), gain)


def test_checks_of_random_metrics_are_those_of_all_pairs_in_fractions() -> None:
    """Near-duplicate points, scales from 1e-300 to 1e300, graphs with edges given one way."""
    rng = np.random.default_rng(32)
    seen = set()
    for _ in range(150):
        epsilon, given, distance = random_distances(rng)
        n = len(distance)
        privacy, prior = MetricPrivacy(epsilon, given).for_prior(Prior.uniform(n)), Prior.uniform(n)
        with np.errstate(over="ignore"):
            ways = np.minimum(np.asarray(privacy.shortest_paths) * epsilon, 300.0)
        matrix = rng.dirichlet(np.ones(2), n)
        matrix[:, 0] = np.exp(-ways[0] * rng.choice([0.5, 1.0 - 1e-15, 1.0, 1.0 + 1e-12, 1.5])) / 4
        matrix = matrix / matrix.sum(axis=1, keepdims=True)
        if rng.random() < 0.02:
            matrix = repair_matrix(prior, privacy, matrix).matrix
        wrong = broken_pairs(epsilon, distance, matrix)
        exact = np.array(prior.weights, dtype=object)
        said = privacy.violation(exact, scale_to_integers(matrix), round_exp_down)
        assert {int(y) for y in np.flatnonzero(np.array(said > 0, dtype=bool))} == {
            y for _, _, y in wrong
        }
        kept = privacy.ratios(prior.pmf)
        assert all(
            math.isfinite(distance[x][z]) for x, z in zip(kept.above, kept.below, strict=True)
        )
        assert follows(distance, kept)
        seen.add(bool(wrong))
    assert seen == {False, True}


def follows(distance: Any, kept: Any) -> bool:
    """Whether the pairs that were kept imply the others, to a trillionth of their distances."""
    n = len(distance)
    ways = [[Fraction(0) if x == z else None for z in range(n)] for x in range(n)]
    for x, z in zip(kept.above.tolist(), kept.below.tolist(), strict=True):
        ways[x][z] = Fraction(float(distance[x][z]))
    shortened: Any = shortest(ways)
    return all(
        shortened[x][z] is not None
        and shortened[x][z] <= Fraction(float(distance[x][z])) * (1 + Fraction(1, 10**12))
        for x in range(n)
        for z in range(n)
        if math.isfinite(distance[x][z])
    )


def test_parts_that_are_no_ratio_bounds_leave_a_gap_that_is_said() -> None:
    both = ApproximatePML(0.3, 0.05) & LDP(1.0)
    gain = ExpectedGain(np.random.default_rng(8).normal(size=(4, 4)))
    result = solve(design(PRIOR, both, gain))
    assert result.certificate.verify()
    assert both.holds(PRIOR, result.mechanism)
    assert result.status.value == "unproved"
    alone = [
        solve(design(PRIOR, part, gain)).bound for part in (ApproximatePML(0.3, 0.05), LDP(1.0))
    ]
    assert result.value <= min(result.bound, *alone)


@pytest.mark.parametrize("detour", [None, 0.0, 1.0])
def test_many_bounds_on_pairs_of_letters_are_solved_by_columns(
    detour: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With whichever pairs it begins: those that a way of twice the length implies leave many broken."""
    if detour is not None:
        monkeypatch.setattr(pair_interior_point, "MAX_DETOUR_FRACTION", detour)
    random = np.random.default_rng(5)
    points = random.random((18, 2))
    distance = np.hypot(*(points[:, None] - points).T)
    program = design(
        random.dirichlet(np.ones(18)), MetricPrivacy(4.0, distance), ExpectedLoss(distance)
    )
    result, other = solve(program, "pair-ipm", tolerance=1e-8), solve(program, "highs")
    assert result.certificate.verify()
    assert not broken_pairs(4.0, distance, result.mechanism.matrix)
    assert result.value == pytest.approx(other.value, abs=1e-6)
    assert result.bound <= other.value + 1e-9


def test_levels_past_the_largest_exponential_bind_nothing() -> None:
    for epsilon in (709.0, 710.0, 1e5):
        ratios = (
            Pufferfish(epsilon, SECRET),
            PML(epsilon, about=SECRET),
            GainLeakage(epsilon, np.eye(4)),
        )
        for privacy in ratios:
            found = solve(design(PRIOR, privacy, ExpectedGain(np.eye(4))))
            assert found.value == pytest.approx(1.0, abs=1e-9)
    nothing = solve(
        design([0.5, 0.5], RatioBound([[0, 0]], [[1, 1]], [0.1]), ExpectedGain(np.eye(2)))
    )
    assert nothing.level == -math.inf
    assert nothing.value == pytest.approx(1.0)


class TestFunnel:
    @pytest.mark.parametrize(("secrets", "epsilon"), [(2, 0.01), (2, 0.3), (3, 0.3)])
    def test_it_is_the_best_over_all_extreme_columns(self, secrets: int, epsilon: float) -> None:
        rng = np.random.default_rng(secrets)
        secret = Secret(rng.dirichlet(np.ones(secrets * 9)).reshape(secrets, 9))
        p = secret.prior.pmf
        result = solve(
            design(secret.prior, PML(epsilon, about=secret), MutualInformation()), gap=1e-8
        )
        assert result.certificate.verify()
        bounds = secret.conditionals - math.exp(epsilon) * p
        rho = np.asarray(result.certificate.multipliers)
        for _ in range(
            20
        ):  # corners of the polytope of columns, each by a linear program of its own
            cost = rng.normal(size=9)
            lam = linear_program(
                cost, A_ub=bounds, b_ub=np.zeros(secrets), A_eq=p[None], b_eq=[1.0]
            ).x
            assert p @ rho + p @ xlogy(lam, lam) - (p * rho) @ lam <= result.bound + 1e-8


@pytest.mark.parametrize(
    "utility", [MutualInformation(), ExpectedLoss(hamming)], ids=["convex", "linear"]
)
@pytest.mark.parametrize("epsilon", [1e-6, 1e-9])
def test_a_tiny_level_costs_no_more_than_it_must(epsilon: float, utility: Any) -> None:
    secret = Secret(np.random.default_rng(7).dirichlet(np.ones(15)).reshape(3, 5))
    for privacy in (Pufferfish(epsilon, secret), PML(epsilon, about=secret) & PML(0.6)):
        result = solve(design(secret.prior, privacy, utility))
        assert result.certificate.verify()
        assert result.gap <= 1e-6


def test_budgets_beside_a_letter_of_which_no_float_holds_the_odds_as_integers() -> None:
    prior = Prior([1e-297, 1e-65, 1 - 1e-16])
    result = solve(design(prior, PML([20.0, 1e-6, 0.5]), ExpectedGain(np.eye(3))))
    assert result.certificate.verify()
    assert result.value == pytest.approx(1.0)  # always the letter that nearly everybody has


@pytest.mark.parametrize(
    ("declare", "said"),
    [
        (lambda: PML([0.1, -0.2]), "budget of letter 1"),
        (lambda: PML([]), "no budget"),
        (lambda: PML([0.1], about=SECRET), "give one of them"),
        (lambda: PML(0.1, about=JOINT), "give a Secret"),  # type: ignore[arg-type]
        (lambda: design(PRIOR, PML([0.1, 0.2]), ExpectedGain(np.eye(4))), "2 budgets"),
        (lambda: design([0.25] * 4, PML(0.1, about=SECRET), ExpectedGain(np.eye(4))), "differs from the pri"),
        (lambda: design([0.5, 0.5], PML(0.1, about=SECRET), ExpectedGain(np.eye(2))), "4 letters"),
        (lambda: Pufferfish(0.1, SECRET, pairs=[(0, 7)]), "none of the secret's values"),
        (lambda: Pufferfish(0.1, Secret([[0.5, 0.5]])), "two values"),
        (lambda: Pufferfish(0.1, SECRET, [(0, 0)]), "one value twice"),
        (lambda: PML(0.1, JointLaws.ball(COUNTED, 0.1), Secret(JOINT[:, ::-1])), "from one secret"),
        (lambda: GainLeakage(0.1, [[0, 0]]), "nothing to learn"),
        (lambda: GainLeakage(0.1, [[0, -1]]), "negative"),
        (lambda: RatioBound([[3, 0]], [[1, 1]], 0.1), "releases nothing"),
        (lambda: RatioBound([[1, 0]], [[1, 1], [1, 1]], 0.1), "shape"),
        (lambda: RatioBound([[1, 0]], [[1, 1]], [0.1, 0.2]), "2 entries for 1"),
        (lambda: RatioBound([[-1, 0]], [[1, 1]], 0.1), "negative"),
        (lambda: PML(0.1) & PML(0.2), "one follows from the other"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(declare: Callable[[], Any], said: str) -> None:
    with pytest.raises(PrivacyError, match=said):
        declare()


def test_few_pairs_are_a_block_and_its_rows_have_coefficients_of_either_sign() -> None:
    for name in ("line", "matrix", "three"):
        assert ON_FOUR[name].for_prior(PRIOR).cone_block(PRIOR) is None
    assert PML(0.0, about=SECRET).cone_block(PRIOR) is None
    assert PML(1e-6, about=SECRET).cone_block(PRIOR) is not None
    assert LIP(0.0, 0.5).cone_block(PRIOR) is None
    for roomy in (PML(0.5), LDP(0.5), LIP(0.5, 0.5), MaximalLeakage(0.5)):
        assert roomy.cone_block(PRIOR) is not None
    program = design(PRIOR, ON_FOUR["secret"], ExpectedGain(np.eye(4)))
    shut = program.with_constraints(shut=program.mechanism[0, 1] == 0)
    found, other = solve(shut, solver="block-ipm"), solve(shut, solver="highs")
    assert found.certificate.verify()
    assert found.value == pytest.approx(other.value, abs=1e-6)


def test_whole_numbers_between_2_to_the_63_and_64_stay_whole() -> None:
    """Their sum is no signed integer of 64 bits, and numpy put it into a float beside ones."""
    prior = Prior([math.nextafter(2.0**-11, 0.0), 0.5, 0.5 - 2.0**-11])  # multiples of 2^-64
    weights = np.array(prior.weights, dtype=object)
    assert 2**63 <= weights.sum() < 2**64
    shares = [Fraction(int(weight), int(weights.sum())) for weight in weights]
    mean = (shares[1] / 2 + shares[2] / 4) / (1 - shares[0])  # what letter 0, of 0 nats, must have
    requirement = PML([0.0, 20.0, 20.0])
    for near in (float(mean), math.nextafter(float(mean), 0.0), math.nextafter(float(mean), 1.0)):
        assert Fraction(near) != mean
        matrix = np.array([[near, 1 - near], [0.5, 0.5], [0.25, 0.75]])
        assert max(requirement.violation(weights, scale_to_integers(matrix), round_exp_down)) > 0


def test_steps_of_many_nats_are_mended_by_next_to_nothing_beside_small_ones() -> None:
    """What a constant adds to a pair of 50 nats is e^48 times as much as what it adds to one of 2."""
    places = np.array([0, 2.5, 2.6, 3.6, 3.7, 6.2])
    requirement = MetricPrivacy(20.0, np.abs(places[:, None] - places))
    fixed = repair_matrix(Prior.uniform(6), requirement, np.array([[0.0, 1.0]] * 5 + [[1.0, 0.0]]))
    assert fixed.theta < 1e-14
    assert requirement.holds(Prior.uniform(6), fixed.matrix)


def test_with_room_has_the_pairs_of_its_own_level() -> None:
    prior, tight = Prior([0.5, 0.3, 0.2]), GainLeakage(0.0, np.eye(3))
    solve(
        design(prior, tight, ExpectedGain(np.eye(3)))
    )  # keeps the pairs of the level that was asked for
    tight.support_function(prior, np.eye(3))
    roomy = tight.with_epsilon(0.25)
    for requirement, level in ((tight, 0.0), (roomy, 0.25)):
        found = requirement.list_ratios(prior)
        assert found is not None
        assert found.exponents.tolist() == [level] * 3


@pytest.mark.parametrize(
    "name", [name for name in ON_FOUR if name not in ("data and secret", "three")]
)
def test_a_few_pairs_at_a_time_have_the_values_of_all(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prior = PRIORS.get(name, PRIOR)
    requirement = ON_FOUR[name].for_prior(prior)
    matrix = np.random.default_rng(7).dirichlet(np.ones(3), 4)
    weights = np.array(prior.weights, dtype=object)

    def values() -> list[Any]:
        exact = requirement.violation(weights, scale_to_integers(matrix), round_exp_down).tolist()
        return [
            requirement.levels(prior, matrix),
            exact,
            requirement.violation(prior.pmf, matrix, math.exp),
        ]

    *found, near = values()
    monkeypatch.setattr("pmlopt.model.privacy.ratios._MAX_BATCH_ENTRIES", 4)
    *again, nearly = values()
    assert again == found
    assert nearly == pytest.approx(near, abs=1e-14)


MIRRORED = Secret.from_counts([[1, 3, 2, 3, 1], [1, 1, 6, 1, 1]])


@pytest.mark.parametrize(
    "requirement",
    [PML(0.2, about=MIRRORED), PML([0.3, 0.5, 0.1, 0.5, 0.3]), MetricPrivacy(0.4, steps)],
    ids=["secret", "budgets", "metric"],
)
@pytest.mark.parametrize("output", [0, 2])
def test_of_columns_that_are_constant_on_cells_it_asks_the_same(
    requirement: Any, output: int
) -> None:
    listed = Prior.from_counts([2, 4, 8, 4, 2])
    cells = InvariantPrior(listed, [reflection(5)]).make_pairs().get_cells(output)
    assert cells.classes is not None
    own, whole = requirement.on_cells(cells), requirement.for_prior(listed)
    sharp = np.random.default_rng(8).dirichlet(np.ones(3), cells.size)
    for share in (0.05, 0.2, 1.0):
        values = round_rows_to_grid(share * sharp + (1 - share) / 3)
        on_letters = values[cells.classes]
        levels = whole.levels(listed, on_letters)
        assert own.levels(cells.prior, values) == pytest.approx(levels, abs=1e-14)
        assert is_met_exactly(cells.prior, own, values) == is_met_exactly(listed, whole, on_letters)


def test_counts_from_2_to_the_63_keep_all_digits() -> None:
    counts = [[2**63 + 1, 1], [5, 2**64 - 1]]
    assert Secret.from_counts(counts).weights[0].tolist() == counts
