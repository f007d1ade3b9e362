"""Least leakage: the smallest PML level at which a utility can be promised."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar, cast, overload

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.core.lazy_imports import cp, sparse
from pmlopt.core.numbers.argument_checks import check_one_for_each
from pmlopt.core.numbers.arrays import BoolArray, FloatArray, Labels, check_real
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior, PriorLike, as_prior
from pmlopt.data.secret import Secret
from pmlopt.data.symmetry.prior import PairSpace, SymmetricPrior
from pmlopt.errors import ProgramError, UtilityError
from pmlopt.measures import leakage_level
from pmlopt.model.closed_forms.worst_case import build_uniform_on
from pmlopt.model.privacy import PML, Requirement
from pmlopt.model.uncertainty import PriorSet, pointwise_capacity
from pmlopt.model.uncertainty.joint_laws import JointLaws
from pmlopt.model.utility import LinearUtility, Utility, UtilityLike, as_utility
from pmlopt.model.utility.orders import allowed_pairs
from pmlopt.programs.exact.rounding import round_rows_to_grid
from pmlopt.programs.least_leakage.certificate import (
    ExpectedUtilityFloor,
    LevelCertificate,
    NormalizedFloor,
    find_usable_pairs,
)
from pmlopt.programs.least_leakage.epsilon_builder import least_epsilon
from pmlopt.programs.least_leakage.epsilon_program import LeastEpsilon
from pmlopt.programs.least_leakage.families import Family, parse_family
from pmlopt.programs.linear.build_certificate import round_lifts_to_integers
from pmlopt.programs.linear.columns import ColumnSystem, DenseColumns, OrbitColumns
from pmlopt.programs.program import CvxpyModel, Outputs, Program, build_problem, resolve_outputs

P = TypeVar("P", bound="LeastLeakage")


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class LeastLeakage(Program[LevelCertificate]):
    """The program of the least PML level of a mechanism on allowed pairs with a utility floor.

    `problem` is the linear program for one level: how far mechanisms of level epsilon stay short of the
    demands. Its optimum is 0 iff there is one that meets them. `exp_neg_epsilon` is the parameter e^-epsilon;
    pairs that are not allowed have no variable. `solve` searches for the least level.

    Attributes:
        prior: N letters.
        outputs: the M labels.
        allowed: (N, M) which letters may emit which outputs.
        floor: on the expected utility, or None.
        over: the set of priors that the level is over; None where it is the prior's.

    Source: [song2026worstcase, problem (2) and eq. (10)].

    Examples:
        >>> from pmlopt import worst_case_utility
        >>> program = worst_case_utility([0.6, 0.2, 0.2], [[3, 2, 1], [1, 3, 2], [2, 1, 3]], 2)
        >>> program.exp_neg_epsilon.value = 0.5
        >>> round(float(program.problem.solve(solver="HIGHS")), 9)  # level log 2 can be reached
        0.0
    """

    prior: Prior
    outputs: Labels
    allowed: BoolArray
    floor: NormalizedFloor | None
    over: PriorSet | None = None
    maximised = False
    """The level is minimised."""

    @property
    def row_and_column_labels(self) -> tuple[Labels | None, Labels | None]:
        """Return the labels of the mechanism's rows (letters) and columns (outputs)."""
        return self.prior.labels, self.outputs

    @property
    def exp_neg_epsilon(self) -> cp.Parameter:
        """Return the parameter e^-epsilon of `problem`, which is 1 at first."""
        return self.problem.param_dict["share"]

    @property
    def columns(self) -> ColumnSystem:
        """Return the columns of letters and outputs, with their multiplicities."""
        return DenseColumns(self.prior, PML(0.0, self.over))

    @cached_property
    def usable_pairs(self) -> BoolArray:
        """Return (N, M) the allowed pairs of the outputs that can occur at a finite level."""
        return self.allowed if self.over is None else find_usable_pairs(self.allowed, self.over)

    @cached_property
    def max_output_probabilities(self) -> FloatArray:
        """Return (M,) the least prior probability of the letters that may emit each output."""
        if self.over is None:
            return self.columns.mean_by_output(self.allowed)
        return np.where(
            self.usable_pairs.any(axis=0), self.over.min_mean(self.allowed.astype(np.float64)), 0.0
        )

    @property
    def uniform_mechanism(self) -> FloatArray:
        """Return the (N, M) mechanism that is uniform on the usable pairs of each letter."""
        return build_uniform_on(self.usable_pairs).matrix

    def find_worst_priors(self, matrix: FloatArray) -> FloatArray:
        """Find for each output the (N, M) prior of the set under which it leaks most."""
        if self.over is None:
            return np.repeat(self.prior.pmf[:, None], matrix.shape[1], axis=1)
        return np.stack([self.over.minimizer(column) for column in matrix.T], axis=1)

    def compute_level(self, matrix: FloatArray) -> float:
        """Compute the PML level of a matrix, in nats; over a set of priors the largest."""
        if self.over is None:
            return leakage_level(self.prior, matrix)
        return float(pointwise_capacity(self.over, Mechanism(matrix, self.prior.labels)).max())

    @property
    def mechanism(self) -> cp.Expression:
        """Return the (N, M) mechanism matrix as a cvxpy expression; zero where a pair is not allowed."""
        return _express_matrix(self.allowed, self.variables["entries"])

    def round_to_grid(self, lifts: FloatArray) -> FloatArray:
        """Round a mechanism to the exact grid, with rows summing to exactly one."""
        return round_rows_to_grid(lifts)

    def expand_entries(self, entries: FloatArray) -> FloatArray:
        """Expand the values on allowed pairs to a full matrix."""
        lifts = np.zeros(self.allowed.shape)
        lifts[self.allowed] = entries
        return lifts

    @property
    def best_constant(self) -> FloatArray:
        """Return the best constant mechanism on outputs that all letters may emit; NaN without one."""
        gains = np.zeros(self.allowed.shape) if self.floor is None else self.floor.normalized_gains
        gains_by_output = self.columns.mean_by_output(np.where(self.allowed, gains, -np.inf))
        if np.isneginf(gains_by_output).all():
            return np.full(self.allowed.shape, np.nan)
        best = self.columns.broadcast_outputs(
            np.arange(len(gains_by_output)) == gains_by_output.argmax(), self.allowed.shape
        )
        return np.asarray(best, dtype=float)

    def floor_violation(self, matrix: FloatArray) -> float:
        """Compute the violation of the utility floor by a mechanism, in its unit."""
        if self.floor is None:
            return 0.0
        short = -self.floor.compute_slack(matrix)
        return 0.0 if short <= self.floor.rounding else short


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SymmetricLeastLeakage(LeastLeakage):
    """The program of the least PML level for an expected gain, on orbits of pairs.

    `problem` and `exp_neg_epsilon` are as those of `LeastLeakage`, with an entry for each orbit of pairs: the
    probability of an output of the orbit given a letter of it, times the number of outputs in their orbit.

    Attributes:
        prior: the symmetric prior.
        space: the pairs.
        sampled_pairs: on how many of them it was looked at whether the utility is constant on orbits; 0 for
            all.

    Examples:
        >>> from pmlopt import CoordinateLoss, IIDPrior, least_leakage, solve
        >>> loss = CoordinateLoss([[0, 1], [1, 0]])
        >>> program = least_leakage(IIDPrior([0.7, 0.3], 8), loss, expected=1.9226514289)
        >>> round(solve(program).value, 6)  # the loss that one nat buys
        1.0
    """

    prior: SymmetricPrior
    floor: NormalizedFloor
    space: PairSpace
    sampled_pairs: int = 0

    @property
    def row_and_column_labels(self) -> tuple[Labels | None, Labels | None]:
        """Return no labels: a mechanism by orbits is no matrix."""
        return None, None

    @property
    def columns(self) -> OrbitColumns:
        """Return the columns, one for each orbit of outputs."""
        return cast("OrbitColumns", self.floor.columns)

    @property
    def uniform_mechanism(self) -> FloatArray:
        """Return (C,) the mechanism that is uniform on all outputs."""
        outputs = self.space.orbits.outputs
        shares = np.array([n / sum(outputs) for n in outputs])
        return np.asarray(self.columns.broadcast_outputs(shares, self.allowed.shape))

    def compute_level(self, matrix: FloatArray) -> float:
        """Compute the PML level of lifts, in nats."""
        laws = self.columns.broadcast_outputs(self.columns.mean_by_output(matrix), matrix.shape)
        return max(0.0, float(np.log(np.max(matrix[matrix > 0] / laws[matrix > 0]))))

    def round_to_grid(self, lifts: FloatArray) -> FloatArray:
        """Round (C,) orbit values to integers with exact row sums, returned as floats."""
        return round_lifts_to_integers(
            self.space, lifts, self.columns.mean_by_output(lifts)
        ).scaled_entries

    def __repr__(self) -> str:
        return f"<SymmetricLeastLeakage on {self.prior!r}>"


def worst_case_utility(
    prior: PriorLike,
    order: ArrayLike,
    threshold: int,
    outputs: Outputs = None,
    over: PriorSet | None = None,
) -> LeastLeakage:
    """Build the design of least PML level that never emits an output below a rank.

    Args:
        prior: N letters.
        order: (N, M) the rank of each output for each letter, from 1 to M, the higher the better;
            `utility_order` makes it from utilities.
        threshold: h, from 1 to M; at 1 all is allowed and nothing leaks.
        outputs: the M labels; left out, the prior's letters where M = N.
        over: a set of priors: the level is the largest under one of them. Of `prior` only the letters count.

    Raises:
        UtilityError: the order or the threshold cannot be meant, or a letter has no output of rank h.
        PrivacyError: `over` is no set of priors on these letters.
        ProgramError: the outputs are not M, or no mechanism has a finite level over the set.

    Source: [song2026worstcase, problem (2)].

    Examples:
        >>> from pmlopt import solve
        >>> order = [[3, 2, 1], [1, 3, 2], [2, 1, 3]]
        >>> result = solve(worst_case_utility([0.6, 0.2, 0.2], order, 2))
        >>> round(np.exp(result.value).item(), 9), round(np.exp(result.bound).item(), 9)
        (2.0, 2.0)
        >>> result.mechanism.matrix.round(9) + 0.0  # [song2026worstcase, Example 1]
        array([[0.5, 0.5, 0. ],
               [0. , 1. , 0. ],
               [1. , 0. , 0. ]])
        >>> from pmlopt import L1Ball
        >>> near = solve(worst_case_utility([0.6, 0.2, 0.2], order, 2, over=L1Ball([0.6, 0.2, 0.2], 0.1)))
        >>> round(np.exp(near.value).item(), 9), round(np.exp(near.bound).item(), 9)
        (2.222222222, 2.222222222)
    """
    known = as_prior(prior)
    allowed = allowed_pairs(order, threshold)
    check_one_for_each("the order has", len(allowed), "rows", known.size, "letters", UtilityError)
    return build_least_leakage(
        known, allowed, _resolve_labels(known, allowed.shape[1], outputs), over
    )


def build_least_leakage(
    prior: Prior, allowed: BoolArray, outputs: Labels, over: PriorSet | None = None
) -> LeastLeakage:
    """Build the design of least PML level on a set of allowed pairs.

    Raises:
        PrivacyError: `over` is no set of priors on these letters.
        ProgramError: a letter has no output that can occur at a finite level over the set.
    """
    if over is not None:
        PML(0.0, over).priors(prior)  # checks that it is a set on these letters
        closed = np.flatnonzero(~find_usable_pairs(allowed, over).any(axis=1))
        if len(closed):
            raise ProgramError(
                f"no mechanism has a finite level over {over!r}: the letter {prior.labels[closed[0]]!r} has "
                "no output whose letters have a positive probability under each of its priors. Allow more "
                "pairs, or take a set in which every letter has some"
            )
    return _make_program(
        LeastLeakage, prior=prior, allowed=allowed, outputs=outputs, floor=None, over=over
    )


@overload
def least_leakage(
    prior: SymmetricPrior, utility: UtilityLike, *, expected: float
) -> SymmetricLeastLeakage: ...
@overload
def least_leakage(
    prior: PriorLike,
    utility: UtilityLike,
    *,
    expected: float | None = None,
    worst: float | None = None,
    outputs: Outputs = None,
) -> LeastLeakage: ...
@overload
def least_leakage(
    prior: PriorLike,
    utility: UtilityLike,
    *,
    worst: float,
    outputs: Outputs = None,
    over: PriorSet | None = None,
) -> LeastLeakage: ...
@overload
def least_leakage(
    prior: PriorLike,
    privacy: Family | UtilityLike | None = None,
    utility: UtilityLike | None = None,
    reach: float | None = None,
    *,
    expected: float | None = None,
    worst: float | None = None,
    outputs: Outputs = None,
    over: PriorSet | JointLaws | None = None,
    about: Secret | None = None,
) -> LeastLeakage | LeastEpsilon: ...
def least_leakage(  # type: ignore[misc]  # the second argument may be either
    prior: PriorLike,
    privacy: Family | UtilityLike | None = None,
    utility: UtilityLike | None = None,
    reach: float | None = None,
    *,
    expected: float | None = None,
    worst: float | None = None,
    outputs: Outputs = None,
    over: PriorSet | JointLaws | None = None,
    about: Secret | None = None,
) -> LeastLeakage | LeastEpsilon:
    """Build the search for the smallest leakage level at which a utility reaches a target.

    It is `least_leakage(prior, privacy, utility, reach)`, or `least_leakage(prior, utility, expected=...)`
    for PML, also with a floor on the worst case. Under PML of the prior, with an expected gain or loss, it
    is a linear program in the level (`LeastLeakage`); all else is a search over designs (`LeastEpsilon`).

    Args:
        prior: N letters. Of a symmetric prior such as `IIDPrior`, in orbits of pairs for gains and losses.
        privacy: the family of requirements: a class such as `LDP`, its name, a requirement whose level is not
            looked at, such as `RenyiPML(2, 0)`, or a function of epsilon. Left out, PML, and the utility may
            take its place.
        utility: as in `design`: a gain, a loss, `MutualInformation` or any other `SubConvex`,
            `EstimationError`, or a name.
        reach: what a utility that is maximised reaches at least; a loss or an error is at most that.
        expected: the same of an expected gain or loss; with PML it may be combined with `worst`.
        worst: what the gain of every pair that can occur must reach; the loss must not exceed it.
        outputs: the M outputs, as in `design`.
        over: the set of priors that the level is over.
        about: the secret that the level is about, in place of the data.

    Raises:
        ProgramError: no target is given, or no mechanism of a finite level reaches it; the message states how
            far one gets.
        PrivacyError: `privacy` is no family with one level, or `over` and `about` do not fit it.
        UtilityError: the utility does not fit.

    Source: [song2026worstcase, Section II], with the utilities themselves for their order; the floor on the
    expectation is the trade-off of [grosse2025empirical, Section II-A] from its other side.

    Examples:
        >>> from pmlopt import LDP, ExpectedGain, MutualInformation, solve
        >>> told = solve(least_leakage([0.25] * 4, ExpectedGain(np.eye(4)), expected=0.5))
        >>> round(np.exp(told.value).item(), 9)  # guessing right half the time takes log 2
        2.0
        >>> told = solve(least_leakage([0.25] * 4, LDP, ExpectedGain(np.eye(4)), 0.5))
        >>> round(np.exp(told.value).item(), 6)  # randomized response: e^eps / (e^eps + 3) = 1/2
        3.0
        >>> told = solve(least_leakage([0.25] * 4, MutualInformation(), reach=np.log(2)))
        >>> round(np.exp(told.value).item(), 6)  # two letters that stay together
        2.0
    """
    if utility is None:
        privacy, utility = None, cast("UtilityLike | None", privacy)
    known = as_prior(prior)
    chosen = _check_utility(utility)
    target = _choose_target(chosen, reach, expected, worst)
    family = parse_family(cast("Family | None", privacy), over, about)
    of_pairs = isinstance(chosen, LinearUtility) and type(family) is PML
    if worst is not None and not of_pairs:
        raise ProgramError(
            "`worst` is a floor on each pair of an expected gain or loss under PML of the data: leave it "
            "out, or leave `privacy` and `about` out"
        )
    if (
        isinstance(chosen, LinearUtility)
        and type(family) is PML
        and (worst is not None or not family.over)
    ):
        return _build_pair_floor_program(known, chosen, target, worst, outputs, family.over)
    assert target is not None
    return least_epsilon(known, family, chosen, target, outputs)


def _check_utility(utility: object) -> Utility:
    """Validate the utility argument; raise a UtilityError for other objects, such as a requirement."""
    named = utility if isinstance(utility, type) else type(utility)
    if utility is None or issubclass(named, Requirement):
        given = "missing" if utility is None else f"the requirement {named.__name__}"
        raise UtilityError(
            f"the utility is {given}: write least_leakage(prior, requirement, utility, reach), such as "
            "least_leakage(prior, LDP, MutualInformation(), 0.1)"
        )
    return as_utility(utility)  # type: ignore[arg-type]


def _choose_target(
    utility: Utility, reach: float | None, expected: float | None, worst: float | None
) -> float | None:
    """Return the utility target from the arguments; None where only the worst case is bounded."""
    if reach is not None and expected is not None:
        raise ProgramError("`reach` and `expected` are both the target of the utility: give one")
    if expected is not None:
        return check_real(expected, "the expected utility", ProgramError)
    if reach is not None:
        return check_real(reach, "the target of the utility", ProgramError)
    if worst is None:
        needed = (
            "`reach`, `expected` or `worst`" if isinstance(utility, LinearUtility) else "`reach`"
        )
        raise ProgramError(f"no target is given, and without one nothing leaks: give {needed}")
    return None


def _build_pair_floor_program(
    known: Prior | SymmetricPrior,
    utility: LinearUtility,
    expected: float | None,
    worst: float | None,
    outputs: Outputs,
    over: PriorSet | None,
) -> LeastLeakage:
    """Build the least-PML program with floors on the expected gain and on each pair's gain."""
    if expected is not None and over is not None:
        raise ProgramError(
            "`worst`, a target of the expected utility and `over` cannot be given together: leave one out"
        )
    if isinstance(known, SymmetricPrior):
        if expected is None or worst is not None or outputs is not None:
            raise ProgramError(
                f"on {known!r} least leakage takes only `expected`: leave the others out"
            )
        return _build_symmetric(known, utility, expected)
    letters = resolve_outputs(known.labels, utility.fixed_outputs, outputs)
    table = utility.evaluate_table(known.labels, letters)
    allowed = np.ones(table.shape, dtype=bool)
    if worst is not None:
        limit = check_real(worst, "the worst utility", ProgramError)
        allowed = table >= limit if utility.maximised else table <= limit
        _check_allowed_outputs(known, utility, table, allowed, limit)
    if expected is None:
        return build_least_leakage(known, allowed, letters, over)
    expected_floor = ExpectedUtilityFloor(utility.maximised, table, expected)
    floor = _check_reachable(
        NormalizedFloor(DenseColumns(known, PML(0.0)), allowed, expected_floor)
    )
    # at the most there is each letter has its best outputs only
    # with more rounding, floats do not decide whether the floor requires each letter's best outputs
    if 1e-6 > floor.rounding >= -floor.min_gain:
        allowed = allowed & (floor.normalized_gains == 0)
    return _make_program(LeastLeakage, prior=known, allowed=allowed, outputs=letters, floor=floor)


def _build_symmetric(
    prior: SymmetricPrior, utility: LinearUtility, expected: float
) -> SymmetricLeastLeakage:
    """Build the least-level search for an expected utility on orbits of pairs."""
    space = prior.make_pairs(utility.shape)
    table = utility.evaluate_on_orbits(space)
    columns = OrbitColumns.from_space(space, PML(0.0))
    allowed = np.ones(table.shape, dtype=bool)
    floor = _check_reachable(
        NormalizedFloor(columns, allowed, ExpectedUtilityFloor(utility.maximised, table, expected))
    )
    return _make_program(
        SymmetricLeastLeakage,
        prior=prior,
        allowed=allowed,
        outputs=(),
        floor=floor,
        space=space,
        sampled_pairs=utility.count_sampled_pairs(space),
    )


def _check_reachable(floor: NormalizedFloor) -> NormalizedFloor:
    """Return the floor after checking that some mechanism reaches it."""
    if floor.min_gain > floor.rounding:
        raise ProgramError(
            f"no mechanism has an expected {floor.kind_text} of {floor.expected.value:.12g}: "
            f"the {'largest' if floor.expected.maximised else 'smallest'} is {floor.max_utility:.12g}"
        )
    return floor


def _check_allowed_outputs(
    prior: Prior, utility: LinearUtility, table: FloatArray, allowed: BoolArray, limit: float
) -> None:
    """Raise an error where a letter has no output within the utility limit."""
    empty = np.flatnonzero(~allowed.any(axis=1))
    if len(empty):
        x = int(empty[0])
        raise ProgramError(
            f"no output has a {utility.kind_text} of {limit:g} for the letter {prior.labels[x]!r}: the "
            "best is "
            f"{(table[x].max() if utility.maximised else table[x].min()):g}"
        )


def _resolve_labels(prior: Prior, count: int, outputs: Outputs) -> Labels:
    """Return the output labels; raise an error where their number is not that of the columns."""
    letters = resolve_outputs(prior.labels, count, outputs)
    check_one_for_each(
        "there are", len(letters), "outputs", count, "columns of the order", ProgramError
    )
    return letters


def _make_program(kind: type[P], **fields: Any) -> P:
    """Build the program, whose cvxpy model has e^-epsilon as a parameter."""
    program = kind(build_model=lambda: _build_model(program), **fields)
    return program


def _express_matrix(allowed: BoolArray, entries: cp.Variable) -> cp.Expression:
    """Build the (N, M) cvxpy matrix with variables on allowed pairs and zeros elsewhere."""
    k = entries.size
    place = sparse.csc_array(
        (np.ones(k), (np.flatnonzero(allowed), np.arange(k))), shape=(allowed.size, k)
    )
    return cp.reshape(place @ entries, allowed.shape, order="C")


def _build_model(program: LeastLeakage) -> CvxpyModel:
    """Build the cvxpy model of the total violation of the demands at a level."""
    columns = program.columns
    allowed = program.allowed
    floor = program.floor
    over = program.over
    n = len(columns.masses)
    m = len(columns.mean_by_output(allowed))
    letter, output, in_row, in_law = columns.list_pairs(allowed)
    k = len(letter)
    exp_neg_epsilon = cp.Parameter(nonneg=True, value=1.0, name="share")
    by_letter = sparse.csr_array((in_row, (letter, np.arange(k))), shape=(n, k))
    by_entry = sparse.csr_array((np.ones(k), (np.arange(k), output)), shape=(k, m))
    entries = cp.Variable(k, nonneg=True, name="entries")
    largest = cp.Variable(m, nonneg=True, name="column_maximum")
    shortfall = cp.Variable(n, nonneg=True, name="shortfall")
    variables = {"entries": entries, "column_maximum": largest, "shortfall": shortfall}
    constraints = {
        "rows": by_letter @ entries + shortfall == 1,
        "column_maximum": entries <= by_entry @ largest,
    }
    if over is None:
        by_output = sparse.csr_array((in_law, (output, np.arange(k))), shape=(m, k))
        constraints["pml"] = exp_neg_epsilon * largest <= by_output @ entries
    else:
        row = cp.reshape(largest, (1, m), order="C")
        least = over.to_cvxpy(_express_matrix(allowed, entries), row)
        constraints |= {**{f"set_{name}": rows for name, rows in least.constraints.items()}}
        constraints["pml"] = exp_neg_epsilon * row <= least.value
        variables |= {f"set_{name}": variable for name, variable in least.variables.items()}
    missing = cp.sum(shortfall) / n
    if floor is not None:
        lack = cp.Variable(nonneg=True, name="lack")
        variables["lack"] = lack
        # the utility is above its floor by this share of its range, more than a solver's noise
        margin = min(1e-14, max(0.0, -floor.min_gain) / 2)
        constraints["expected"] = (
            in_law * floor.normalized_gains[allowed]
        ) @ entries + lack >= floor.min_gain + margin
        missing = missing + lack
    return CvxpyModel(build_problem(cp.Minimize(missing), constraints), variables, constraints)
