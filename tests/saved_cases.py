"""Small programs of every kind of certificate and every kind of requirement."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import cvxpy as cp
import numpy as np

from pmlopt import (
    LDP,
    LIP,
    PMC,
    PML,
    AllPriors,
    ApproximatePML,
    Box,
    ChiSquareBall,
    CirclePrior,
    ConvexHull,
    CoordinateLoss,
    EntropySet,
    EstimationError,
    ExpectedGain,
    ExpectedLoss,
    GainLeakage,
    GuessLeakage,
    IIDPrior,
    InvariantPrior,
    KLBall,
    L1Ball,
    LikelihoodRegion,
    MaximalAlphaLeakage,
    MaximalLeakage,
    MetricPrivacy,
    MinimumMass,
    MutualInformation,
    Polytope,
    Prior,
    Program,
    Pufferfish,
    RatioBound,
    RenyiPML,
    Result,
    Secret,
    SibsonLeakage,
    Vulnerability,
    WassersteinBall,
    best_worst_case,
    confidence_ball,
    confidence_box,
    design,
    distortion_leakage,
    envelope,
    envelope_design,
    intersection,
    leakage_distortion,
    least_leakage,
    queries,
    record_leakage,
    solve,
    worst_case_utility,
)
from pmlopt.data.symmetry import ProductPrior, reflection
from pmlopt.model.privacy.requirement import Requirement
from pmlopt.model.uncertainty.center import Center
from pmlopt.model.uncertainty.joint_laws import JointLaws
from pmlopt.model.utility import CoordinateGain, DisplacementLoss, SumOfParts, TotalVariation
from pmlopt.programs import best_guaranteed_utility, failure_after_processing
from pmlopt.programs.compliance import prove
from pmlopt.verification import verifier

P = [0.5, 0.3, 0.2]
COUNTED = Prior.from_counts({"a": 5, "b": 3, "c": 2})
LOSS = ExpectedLoss(1 - np.eye(3))
SECRET = Secret(
    [[0.1, 0.2, 0.1], [0.4, 0.1, 0.1]],
    labels=["a", "b", "c"],
    values=["ill", "well"],
    name="health",
)
COUNTED_SECRET = Secret.from_counts([[10, 20, 10], [40, 10, 10]], labels=["a", "b", "c"])
ORDER = [[3, 2, 1], [1, 3, 2], [2, 1, 3]]
CHANNEL = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]]
PARITY = queries.ModularSum(4, 2)

REQUIREMENTS: Mapping[str, Requirement] = {
    "pml": PML(0.3),
    "ldp": LDP(0.7),
    "lip": LIP(0.3, 0.4),
    "maximal-leakage": MaximalLeakage(0.3),
    "approximate-pml": ApproximatePML(0.3, 0.05),
    "renyi-pml": RenyiPML(2, 0.3),
    "renyi-ball": RenyiPML(2, 0.3, over=L1Ball(P, 0.1)),
    "renyi-box": RenyiPML(1.5, 0.4, over=Box([0.4, 0.2, 0.1], [0.6, 0.4, 0.3])),
    "sibson-leakage": SibsonLeakage(2, 0.2),
    "sibson-odd": SibsonLeakage(1.5, 0.2),
    "maximal-alpha": MaximalAlphaLeakage(2, 0.2),
    "maximal-alpha-odd": MaximalAlphaLeakage(1.5, 0.2),
    "guess-leakage": GuessLeakage(2, 0.2),
    "budgets": PML([0.3, 0.2, 0.5]),
    "metric": MetricPrivacy(0.3, [[0, 1, 2], [1, 0, 1], [2, 1, 0]]),
    "graph": MetricPrivacy(0.3, [[0, 0.3, np.inf], [0.3, 0, np.inf], [np.inf, np.inf, 0]]),
    "pmc": PMC(0.3),
    "vulnerability": Vulnerability(epsilon=0.1),
    "vulnerability-gain": Vulnerability([[1, 0, 0], [0, 1, 2]], 0.1),
    "g-leakage": GainLeakage(0.2, [[1, 0, 0], [0, 1, 1]]),
    "ratio-bound": RatioBound([[1, 0, 0], [0, 1, 0]], [P, P], 0.2),
    "ratio-bounds": RatioBound([[1, 0, 0], [0, 1, 0]], [P, P], [0.2, 0.3]),
    "both": PML(0.3) & LDP(0.5),
    "both-over": PML(0.3, over=L1Ball(P, 0.1)) & MaximalLeakage(0.5),
    "ball": PML(0.3, over=L1Ball(Prior.from_counts([5, 3, 2]), 0.1)),
    "wide-ball": PML(0.6, over=L1Ball(P, 0.6)),
    "point": PML(0.3, over=L1Ball(P, 0.0)),
    "box": PML(0.6, over=Box([0.4, 0.2, 0.1], [0.6, 0.4, 0.3])),
    "minimum-mass": PML(0.6, over=MinimumMass(3, 0.1)),
    "all-priors": PML(0.6, over=AllPriors(3)),
    "kl-ball": PML(0.6, over=KLBall(P, 0.05)),
    "likelihood-region": PML(0.6, over=LikelihoodRegion(P, 0.05)),
    "polytope": PML(0.6, over=Polytope([[1, -1, 0], [0, 0, -1]], [0.3, -0.1])),
    "entropy-set": PML(0.6, over=EntropySet(3, 1.0)),
    "wasserstein-ball": PML(
        0.6, over=WassersteinBall(P, [[0, 1, np.inf], [1, 0, np.inf], [np.inf, np.inf, 0]], 0.1)
    ),
    "intersection": PML(0.6, over=intersection(KLBall(P, 0.05), MinimumMass(3, 0.15))),
    "unobserved": PML(0.6, over=LikelihoodRegion(Center.of([0.6, 0.4, 0.0]), 0.05)),
    "chi-square-ball": PML(0.6, over=ChiSquareBall(P, 0.1)),
    "renyi-chi-square": RenyiPML(2, 0.3, over=ChiSquareBall(P, 0.05)),
    "vertices": PML(0.3, over=ConvexHull([P, [0.4, 0.3, 0.3]])),
}


def constrained() -> Program[Any]:
    """A design with two affine constraints, one of which binds."""
    program = design(P, PML(0.5), LOSS)
    law = cp.sum(program.variables["output_law"][:, 1:]) >= 0.5
    return program.with_constraints(first=program.mechanism[0, 0] <= 0.6, law=law)


def bent() -> Program[Any]:
    """A design with a constraint that no file holds."""
    program = design([0.5, 0.5], PML(0.4), ExpectedGain(np.eye(2)))
    return program.with_constraints(squares=cp.sum_squares(program.mechanism) <= 1.01)


BITS = IIDPrior([0.7, 0.3], 4)
BIT_LOSS = CoordinateLoss([[0, 1], [1, 0]])
ROW = InvariantPrior(Prior.from_counts([1, 2, 4, 2, 1]), [reflection(5)])

ORBITS: Mapping[str, Callable[[], Program[Any]]] = {
    "types": lambda: design(BITS, PML(1.0), BIT_LOSS),
    "types-ldp": lambda: design(BITS, LDP(0.8), BIT_LOSS),
    "types-renyi": lambda: design(BITS, RenyiPML(2, 0.4), BIT_LOSS),
    "types-gain": lambda: design(BITS, LIP(0.3, 0.4), CoordinateGain([[1, 0], [0, 1]])),
    "types-both": lambda: design(BITS, PML(0.5) & LDP(0.8), BIT_LOSS),
    "types-ball": lambda: design(BITS, PML(0.5, over=L1Ball(BITS, 0.05)), BIT_LOSS),
    "types-mass": lambda: design(BITS, PML(1.0, over=MinimumMass(16, 0.005)), BIT_LOSS),
    "circle": lambda: design(CirclePrior(7), LDP(1.0), DisplacementLoss([0, 1, 2, 3, 3, 2, 1])),
    "invariant": lambda: design(ROW, PML(0.4), ExpectedLoss(lambda x, y: abs(x - y))),
    "invariant-budgets": lambda: design(
        ROW, PML([0.4, 0.3, 0.5, 0.3, 0.4]), ExpectedLoss(lambda x, y: abs(x - y))
    ),
    "product": lambda: design(
        ProductPrior(IIDPrior([0.7, 0.3], 2), IIDPrior([0.9, 0.1], 2)),
        PML(1.0),
        SumOfParts(BIT_LOSS, BIT_LOSS),
    ),
    "types-least-epsilon": lambda: least_leakage(BITS, LDP, BIT_LOSS, 0.7),
    "types-least": lambda: least_leakage(BITS, BIT_LOSS, expected=0.7),
}
"""Programs on symmetric priors: their mechanisms are by orbits."""

CASES: Mapping[str, Callable[[], Program[Any]]] = {
    **{name: partial(design, P, privacy, LOSS) for name, privacy in REQUIREMENTS.items()},
    "counts": lambda: design(COUNTED, PML(0.3), LOSS),
    "confidence-ball": lambda: design(COUNTED, PML(1.0, confidence_ball(COUNTED, 0.5)), LOSS),
    "confidence-box": lambda: design(COUNTED, PML(1.5, confidence_box(COUNTED, 0.5)), LOSS),
    "gain": lambda: design(P, PML(0.3), ExpectedGain(np.eye(3) + 0.3)),
    "secret": lambda: design(SECRET.prior, PML(0.1, about=SECRET), LOSS),
    "renyi-secret": lambda: design(SECRET.prior, RenyiPML(2, 0.05, about=SECRET), LOSS),
    "vulnerability-secret": lambda: design(
        SECRET.prior, Vulnerability(epsilon=0.05, about=SECRET), LOSS
    ),
    "pufferfish": lambda: design(SECRET.prior, Pufferfish(0.2, SECRET), LOSS),
    "joint-laws": lambda: design(
        COUNTED_SECRET.prior, PML(0.5, JointLaws.ball(COUNTED_SECRET, 0.05), COUNTED_SECRET), LOSS
    ),
    "constrained": constrained,
    "information": lambda: design(P, PML(0.3), MutualInformation()),
    "information-maximal": lambda: design(P, MaximalLeakage(0.3), MutualInformation()),
    "information-renyi": lambda: design(P, RenyiPML(2, 0.3), MutualInformation()),
    "variation": lambda: design(COUNTED, LDP(0.5), TotalVariation()),
    "information-over": lambda: design(P, PML(0.3, over=L1Ball(P, 0.1)), MutualInformation()),
    "estimation": lambda: design(P, LDP(1.0), EstimationError()),
    "estimation-D": lambda: design(P, PML(0.5), EstimationError(criterion="D")),
    "least": lambda: least_leakage([0.25] * 4, ExpectedGain(np.eye(4)), expected=0.5),
    "least-epsilon": lambda: least_leakage([0.25] * 4, LDP, ExpectedGain(np.eye(4)), 0.5),
    "least-epsilon-information": lambda: least_leakage(COUNTED, MutualInformation(), reach=0.4),
    "least-epsilon-estimation": lambda: least_leakage(P, LDP, EstimationError(), 3.0),
    "least-epsilon-secret": lambda: least_leakage(SECRET.prior, LOSS, reach=0.2, about=SECRET),
    "least-epsilon-over": lambda: least_leakage(P, LOSS, expected=0.3, over=L1Ball(P, 0.1)),
    "threshold": lambda: worst_case_utility([0.6, 0.2, 0.2], ORDER, 2),
    "threshold-over": lambda: worst_case_utility(
        [0.6, 0.2, 0.2], ORDER, 2, over=L1Ball([0.6, 0.2, 0.2], 0.1)
    ),
    "worst-case": lambda: best_worst_case([0.6, 0.2, 0.2], ORDER, 0.7),
    "worst-value": lambda: best_guaranteed_utility(
        [0.6, 0.2, 0.2], ExpectedGain(np.array(ORDER) * 1.0), 0.5
    ),
    "envelope": lambda: envelope(P, CHANNEL, 0.05),
    "envelope-over": lambda: envelope(P, CHANNEL, 0.05, over=L1Ball(P, 0.1)),
    "closed-failure": lambda: failure_after_processing(P, CHANNEL, 0.5),
    "envelope-design": lambda: envelope_design(P, 0.5, 0.05, LOSS),
    "record": lambda: record_leakage(PARITY, queries.laplace(PARITY, 1.0), 2.5),
    "record-capacity": lambda: record_leakage(PARITY, queries.laplace(PARITY, 1.0), 1.0),
    "record-quadratic": lambda: record_leakage(
        queries.Quadratic(3), [[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]], 1.9
    ),
    "trade-off": lambda: leakage_distortion(queries.ModularSum(3, 2), 0.2, 1.5),
    **ORBITS,
    "trade-off-distortion": lambda: distortion_leakage(queries.ModularSum(2, 2), 0.2, 0.5),
}
"""Programs by name; each is solved in well under a second."""

GIVEN: Mapping[str, Callable[[], Result[Any]]] = {
    "compliance": lambda: prove(P, PML(1.1) & LDP(2.1), CHANNEL)
}
"""Mechanisms that nobody designed, with the proof of what they meet."""


@cache
def solved(name: str) -> Result[Any]:
    """The result of a program, solved once; or a mechanism that was given, with its certificate."""
    return GIVEN[name]() if name in GIVEN else solve(CASES[name]())


@cache
def text_of(name: str) -> str:
    """The text of its file."""
    with TemporaryDirectory() as folder:
        solved(name).save(Path(folder) / "result.json")
        return (Path(folder) / "result.json").read_text()


def script(path: Path) -> tuple[int, str]:
    """The exit code of the verifier that stands alone, and what it says."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        code = verifier.main(str(path))  # type: ignore[no-untyped-call]
    return code, said.getvalue()
