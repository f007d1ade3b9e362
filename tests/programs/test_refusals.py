"""What cannot be meant, or cannot be had, is refused in words that say what is wrong."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.stats

from pmlopt import (
    LDP,
    LIP,
    PML,
    AllPriors,
    ApproximatePML,
    Box,
    CirclePrior,
    Continuous,
    ConvexHull,
    CoordinateLoss,
    DistanceLoss,
    EstimationError,
    ExpectedGain,
    ExpectedLoss,
    IIDPrior,
    InvariantPrior,
    L1Ball,
    MaximalLeakage,
    MinimumMass,
    MutualInformation,
    Prior,
    Pufferfish,
    RatioBound,
    Secret,
    best_worst_case,
    certify,
    design,
    distortion_leakage,
    envelope,
    envelope_design,
    leakage_distortion,
    least_leakage,
    record_leakage,
    solve,
    worst_case_utility,
)
from pmlopt.data.symmetry import reflection
from pmlopt.errors import (
    InfeasibleError,
    InputError,
    MechanismError,
    PmloptError,
    PriorError,
    PrivacyError,
    ProgramError,
    QueryError,
    SolverUnavailableError,
    UtilityError,
)
from pmlopt.model.queries import Explicit, ModularSum, symmetric_channel
from pmlopt.model.utility import DisplacementLoss, GuessingProbability, absolute, hamming
from pmlopt.programs import best_guaranteed_utility, failure_after_processing

HALF, THREE, HEAVY = [0.5, 0.5], [0.5, 0.3, 0.2], [0.6, 0.2, 0.2]
EXAMPLE = [[3, 2, 1], [1, 3, 2], [2, 1, 3]]
FLIP = [[0.75, 0.25], [0.25, 0.75]]
NONE_AT_ALL = (math.nan, math.inf, "soon", None)
NO_LOSSES: list[Any] = [[[0, 1]], [0, 1], [[0, -1], [1, 0]], [[0, math.nan], [1, 0]], "d", [[]]]
NEGATIVE = (*NONE_AT_ALL, -0.1, True, [0.1], 10**400)
EQUAL, TELL = ExpectedGain(np.eye(2)), MutualInformation()
DISTANCE = ExpectedLoss(lambda x, y: abs(x - y))
BITS, UNEVEN = IIDPrior([0.5, 0.5], 2), IIDPrior([0.7, 0.3], 4)
MIRRORED = InvariantPrior([0.1, 0.2, 0.4, 0.2, 0.1], [reflection(5)])
HAMMING = CoordinateLoss([[0, 1], [1, 0]])
PARITY, FOUR, LARGE = ModularSum(3, 2), ModularSum(4, 2), ModularSum(15, 2)
NUMBER, ERROR = Continuous(scipy.stats.uniform()), EstimationError()
MANY, EVEN = Prior(np.random.default_rng(92).dirichlet(np.ones(45))), np.full(41, 1 / 41)
WIDE = Secret(np.random.default_rng(1).dirichlet(np.ones(70)).reshape(5, 14))
TRADED, ENVELOPED = leakage_distortion(PARITY, 0.1, 0.5), envelope(HALF, FLIP, 0.5)
FAILED, WITHIN = (
    envelope(HALF, FLIP, 0.3, over=AllPriors(2)),
    envelope_design(HALF, 0.3, 0.1, EQUAL),
)
RANKED = worst_case_utility(Prior(HEAVY, ["a", "b", "c"]), EXAMPLE, 2)
HALF_RIGHT = least_leakage([0.25] * 4, ExpectedGain(np.eye(4)), expected=0.5)
BEST, LINEAR = (
    best_worst_case(HEAVY, EXAMPLE, math.log(2)),
    design(HALF, PML(0.4), ExpectedLoss(hamming)),
)
ESTIMATED, TOLD = design(HALF, PML(0.5), ERROR), design(THREE, PML(0.4), TELL)


def at(*arguments: Any, **named: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return arguments, named


def estimated(workload: Any, criterion: Any) -> Any:
    return design(HALF, PML(0.5), EstimationError(workload, criterion))


CASES: list[tuple[Any, Any, type[Exception], str]] = [
    # plain designs, and how anything is solved
    *((design, at(HALF, PML(0.4), DISTANCE, bad), ProgramError, ".")
      for bad in (0, [], ["a", "a"], [1, 1.0])),
    (design, at(HALF, PML(0.4), ExpectedGain(np.ones((3, 2)))), UtilityError, "shape"),
    (design, at(HALF, PML(0.4), ExpectedGain(np.ones((2, 3))), 2), UtilityError, "shape"),
    (design, at(HALF, PML(0.4), EQUAL, ["a", "b", "c"]), UtilityError, "shape"),
    (design, at(HALF, PML(0.4), ExpectedGain(np.eye(2) * 1.7e308)), UtilityError, "change its unit"),
    (design, at(HALF, 0.4, DISTANCE), PrivacyError, "."),
    (design, at(HALF, PML(0.4), 3), UtilityError, "."),
    *((solve, at(LINEAR, time_limit=bad), InputError, "time limit") for bad in (0, -1.0, *NONE_AT_ALL[:3])),
    *((solve, at(LINEAR, tolerance=bad), InputError, "tolerance") for bad in (0, -1e-9, *NONE_AT_ALL[:3])),
    *((solve, at(wrong), ProgramError, "takes a Program") for wrong in (LINEAR.problem, "x", None)),
    (solve, at(LINEAR, 3), ProgramError, "takes a Program"),
    (solve, at(LINEAR, warm_start=np.full((2, 3), 1 / 3)), ProgramError, "shape"),
    (solve, at(LINEAR, warm_start=np.zeros((2, 2))), MechanismError, "."),
    (LINEAR.assign_variables, at(np.full((2, 3), 1 / 3)), ProgramError, "shape"),
    # by columns
    *((design, at(THREE, PML(0.4), TELL, bad), ProgramError, "fewer than the 3 letters")
      for bad in (2, range(2))),
    (TOLD.with_constraints, at(cap=TOLD.variables["weights"] <= 0.5), ProgramError, "linear utility"),
    *((design, at(THREE, PML(0.4), bad), UtilityError, r"sub-convex|call it|mutual-information")
      for bad in (None, 3, "mutual-informations", MutualInformation)),
    (design, at(MANY, PML(1.0), GuessingProbability()), ProgramError,
     "too many extreme columns on 45 letters"),
    *((solve, at(design(THREE, privacy, TELL), "column-generation", np.eye(3)), ProgramError,
       "does not meet the requirement") for privacy in (PML(0.4), LDP(0.4), LIP(0.4, 0.4))),
    (TOLD.with_mechanism, at(np.eye(3)), ProgramError, "does not meet the requirement"),
    (design, at(WIDE.prior, Pufferfish(1.0, WIDE), TELL), ProgramError,
     "20 bounds on 14 letters.*merge values of the secret"),
    # by orbits
    (design, at(MIRRORED, PML(0.3), ExpectedLoss(lambda x, y: abs(x - y) + 0.5 * (x == 0))), UtilityError,
     r"4 on the pair \(4, 0\), and 4\.5"),
    (design, at(IIDPrior([0.5, 0.5], 24), PML(0.3), ExpectedLoss(lambda x, y: abs(x[0] - y[0]))),
     UtilityError, "not invariant"),
    (design, at(CirclePrior(5), PML(0.3), DisplacementLoss([0, 1, 2, 3, 4])), UtilityError,
     "reflections=False"),
    (design, at(MIRRORED, PML([0.1, 0.2, 0.3, 0.4, 0.5]), DISTANCE), PrivacyError,
     "generator 0 takes its bound 0"),
    *((design, at(MIRRORED, PML(0.3, over=over), DISTANCE), PrivacyError, "not invariant")
      for over in (Box([0.0, 0.0, 0.0, 0.0, 0.1], [1.0] * 5), L1Ball([0.1, 0.2, 0.3, 0.2, 0.2], 0.1))),
    (design, at(BITS, MaximalLeakage(0.5), HAMMING), PrivacyError, "symmetric priors take PML"),
    (design, at(BITS, PML(0.5, over=ConvexHull([[0.25] * 4, [0.1, 0.4, 0.4, 0.1]])), HAMMING), PrivacyError,
     "on letters one by one"),
    (design, at(BITS, RatioBound(np.eye(4), np.full((4, 4), 0.25), 0.5), HAMMING), PrivacyError,
     "lists its letters"),
    (design, at(BITS, PML([0.1, 0.2]), HAMMING), PrivacyError, "3 orbits"),
    (design, at(BITS, PML(0.5, over=MinimumMass(5, 0.1)), HAMMING), PrivacyError,
     "on 5 letters, and the prior on 4"),
    (design, at(BITS, PML(0.5), HAMMING, 3), ProgramError, "leave them out"),
    (design, at(IIDPrior([0.5, 0.5], 14), PML(0.5), ExpectedLoss(np.zeros((2**14, 2)))), UtilityError,
     "too many letters"),
    # estimation, and numbers
    (design, at(HALF, PML(0.0), ERROR), ProgramError, "rank 1 for 2 letters"),
    (design, at(np.full(401, 1 / 401), LDP(1.0), ERROR), ProgramError, r"300,000 .* up to 400 under PML"),
    (design, at(EVEN, PML(1.0, ConvexHull([EVEN, EVEN[::-1]])), ERROR), ProgramError, "40 under others"),
    (design, at(HALF, PML(0.5), ERROR, ["a", "b"]), ProgramError, "give the most that there may be"),
    (design, at(HALF, PML(0.5), ERROR, 0), ProgramError, "number of outputs"),
    (ESTIMATED.with_constraints, at(), ProgramError, "takes no added constraints"),
    (solve, at(ESTIMATED, warm_start=np.eye(2)), ProgramError, "leave out the mechanism"),
    (design, at(HALF, ApproximatePML(0.5, 0.1), ERROR), PrivacyError, "."),
    *((estimated, at(*error), UtilityError, message) for *error, message in (
        ("all", "A", "use identity"), ([[1, 2, 3]], "A", "3 columns for 2 letters"),
        ([[np.nan, 1]], "A", "finite"), (None, "E", "use A, D"), ("prefix", "D", "leave it out"))),
    (design, at(NUMBER, PML(1.0), ExpectedLoss(np.eye(3))), PmloptError, "."),
    (design, at(HALF, PML(1.0), DistanceLoss()), PmloptError, "."),
    (design, at(NUMBER, PML(1.0, over=L1Ball(HALF, 0.1)), DistanceLoss()), PmloptError, "."),
    (lambda: solve(design(NUMBER, PML(1.0), DistanceLoss(np.negative))), at(), PmloptError, "."),
    (solve, at(design(NUMBER, PML(1.0), DistanceLoss()), warm_start=[[1.0]]), PmloptError, "."),
    (certify, at(design(NUMBER, PML(1.0), DistanceLoss()), [[1.0]]), ProgramError, "no bins"),
    # least leakage, and the best worst case
    (least_leakage, at(HALF, EQUAL), ProgramError, "no target is given"),
    (least_leakage, at(HALF, EQUAL, expected=math.nan), ProgramError, "finite"),
    (least_leakage, at(HALF, EQUAL, worst=math.inf), ProgramError, "finite"),
    (least_leakage, at(HALF, EQUAL, expected="0.5"), ProgramError, "number"),
    (least_leakage, at(HALF, ExpectedGain(np.eye(3)), expected=0.5), UtilityError, "shape"),
    (least_leakage, at(HALF, None, expected=0.5), UtilityError, "the utility is missing"),
    (least_leakage, at(HALF, EQUAL, expected=0.5, outputs=["a", "a"]), ProgramError, "twice"),
    (least_leakage, at(THREE, ExpectedGain(np.eye(3)), expected=1.001), ProgramError,
     "expected gain of 1.001: the largest is 1"),
    (least_leakage, at([0.2, 0.3, 0.5], ExpectedGain(np.diag([2.0, 3.0, 4.0])), expected=3.5), ProgramError,
     "the largest is 3.3"),
    (least_leakage, at(THREE, ExpectedLoss(1 - np.eye(3)), expected=-0.01), ProgramError,
     "expected loss of -0.01: the smallest is 0"),
    (least_leakage, at(HEAVY, ExpectedLoss(absolute), expected=0.5, worst=1, over=AllPriors(3)), ProgramError,
     "cannot be given together"),
    (least_leakage, at(UNEVEN, HAMMING, expected=-0.1), ProgramError, "the smallest is 0"),
    (least_leakage, at(UNEVEN, HAMMING, expected=1.0, worst=2.0), ProgramError, "only `expected`"),
    *((worst_case_utility, at(HEAVY, EXAMPLE, h), UtilityError, "threshold")
      for h in (0, -1, 4, 1.5, "2", None)),
    (worst_case_utility, at(HEAVY, [[3, 2, 1], [2, 2, 2], [2, 1, 3]], 3), UtilityError,
     "row 1 of the order has no rank of 3 or more"),
    (worst_case_utility, at(HALF, EXAMPLE, 2), UtilityError, "3 rows for 2 letters"),
    (worst_case_utility, at(HEAVY, EXAMPLE, 2, ["a", "b"]), ProgramError, "outputs"),
    (worst_case_utility, at(HEAVY, EXAMPLE, 2, over=0.1), PrivacyError, "give a set of priors"),
    (worst_case_utility, at(HEAVY, EXAMPLE, 2, over=AllPriors(4)), PrivacyError, "letters"),
    (solve, at(RANKED, warm_start=np.full((3, 2), 0.5)), ProgramError,
     r"shape \(3, 2\); the program needs \(3, 3\)"),
    (solve, at(RANKED, warm_start=np.eye(2)), MechanismError, "3 letters and the mechanism 2"),
    (solve, at(RANKED, warm_start=np.full((3, 3), 1 / 3)), ProgramError,
     "emits output 2 for letter 0, which is not allowed"),
    (solve, at(RANKED, warm_start="closed form"), MechanismError, "2 dimension"),
    (solve, at(HALF_RIGHT, warm_start=np.full((4, 4), 0.25)), ProgramError,
     r"misses the expected utility by 0\.25$"),
    *((best_worst_case, at(HEAVY, EXAMPLE, bad), PrivacyError, ".") for bad in (-0.1, math.nan, "one")),
    (best_worst_case, at(HEAVY, [[4, 1, 1]] * 3, 1.0), UtilityError, "."),
    (best_worst_case, at(HEAVY, EXAMPLE, 1.0, over=AllPriors(2)), PrivacyError, "letters"),
    (certify, at(BEST, np.eye(3)), ProgramError, "leaks"),
    (certify, at(BEST, np.eye(3), np.ones(3)), ProgramError, "no multipliers"),
    (solve, at(BEST, warm_start=np.eye(3)), ProgramError, "leave out the mechanism"),
    (best_guaranteed_utility, at(HALF, np.eye(2), 1.0), UtilityError, "give ExpectedGain"),
    (best_guaranteed_utility, at(HALF, EQUAL, -1.0), PrivacyError, "."),
    # envelopes
    *((envelope, at(HALF, FLIP, bad), PrivacyError, ".") for bad in (0, 1.0, -0.1, 1.1, *NONE_AT_ALL)),
    *((failure_after_processing, at(HALF, FLIP, bad), PrivacyError, ".") for bad in (-0.1, *NONE_AT_ALL)),
    (envelope, at(HALF, FLIP, 0.3, over=0.1), PrivacyError, "give a set of priors"),
    (failure_after_processing, at(HALF, FLIP, 0.3, over=AllPriors(3)), PrivacyError, "3 letters"),
    (certify, at(FAILED, np.eye(2), [1.0, 1.0]), MechanismError, "sum of the probabilities"),
    (certify, at(ENVELOPED, np.eye(3)), MechanismError, "3 rows"),
    (certify, at(ENVELOPED, np.eye(2), [1.0, 1.0, 1.0]), MechanismError, "multipliers"),
    (certify, at(ENVELOPED, [[0.5, 0.2], [0.5, 0.5]]), MechanismError, "."),
    (envelope_design, at(HALF, -1.0, 0.1, EQUAL), PrivacyError, "epsilon"),
    (envelope_design, at(HALF, 1.0, 1.0, EQUAL), PrivacyError, "delta"),
    (envelope_design, at(HALF, 1.0, 0.1, "gain"), UtilityError, "ExpectedGain"),
    (certify, at(WITHIN, np.full((2, 3), 1 / 3)), ProgramError, "shape"),
    (certify, at(WITHIN, np.eye(2), [0.0, 0.0]), ProgramError, "multipliers"),
    (certify, at(WITHIN, np.zeros((2, 2))), MechanismError, "."),
    (solve, at(WITHIN, warm_start=np.eye(2)), ProgramError, "leave it out"),
    # records
    *((record_leakage, at(FOUR, np.eye(2), b), PrivacyError, match) for b, match in (
        (-1e-9, "at least 0"), (-math.inf, "finite"), (math.nan, "finite"), ("2", "number"), (None, "number"),
        (True, "number"), (4 * math.log(2) + 1e-9, "no prior has it"), (100.0, "no prior has it"))),
    (record_leakage, at(FOUR, np.eye(3), 1.0), MechanismError, "3 rows"),
    (record_leakage, at(FOUR, symmetric_channel(Explicit([5, 6]), 0.1), 1.0), MechanismError, "differ"),
    (record_leakage, at([[0, 1]], np.eye(2), 1.0), QueryError, "query"),
    (solve, at(record_leakage(LARGE, np.eye(2), 1.0), "alternating"), SolverUnavailableError,
     "use branch-and-bound"),
    (certify, at(record_leakage(FOUR, np.eye(2), 1.9), np.eye(2)), ProgramError, "proved by a search"),
    *((leakage_distortion, at(PARITY, bad, 0.5), UtilityError, "the distortion D") for bad in NEGATIVE),
    *((distortion_leakage, at(PARITY, bad, 0.5), PrivacyError, "the leakage L") for bad in NEGATIVE),
    *((leakage_distortion, at(PARITY, 0.1, bad), PrivacyError, "the entropy b") for bad in NEGATIVE),
    *((builder, at(PARITY, 0.1, 0.5, loss=loss), UtilityError, "the distortion")
      for builder in (leakage_distortion, distortion_leakage)
      for loss in NO_LOSSES),
    *((leakage_distortion, at(PARITY, 0.1, 0.5, law=law), PriorError, "the true law")
      for law in (HALF, [0.2] * 8, [-0.125, 0.375, *[0.125] * 6], "p", [[0.5], [1, 2]])),
    (solve, at(TRADED, warm_start=np.eye(3)), ProgramError,
     r"has shape \(3, 3\); the program needs \(2, 2\)"),
    (certify, at(TRADED, np.eye(2), HALF), ProgramError, "no multipliers"),
    (certify, at(TRADED, [[0.0, 0.0], [0.5, 0.5]]), MechanismError, "."),
    (leakage_distortion, at(PARITY, 0.37, 0.5, loss=[[0.5, 1.0], [1.0, 0.25]]), InfeasibleError,
     r"the least is 0\.375"),
    (leakage_distortion, at(Explicit([["no", "yes"], ["yes", "no"]]), 0.1, 0.5), QueryError, "not numbers"),
    (solve, at(leakage_distortion(LARGE, 0.1, 0.5), "penalty"), SolverUnavailableError, "at most"),
    (leakage_distortion, at(ModularSum(40, 2), 0.1, 0.5, law=HALF), QueryError, "too many"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "arguments", "error", "message"), CASES)
def test_what_cannot_be_meant_is_refused(
    call: Any, arguments: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call(*arguments[0], **arguments[1])
