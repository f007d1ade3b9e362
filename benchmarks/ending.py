"""Solves with limits of a millisecond to three seconds, drawn over all kinds and sizes of programs.

Every solve must end with a mechanism whose level, computed anew from the matrix, keeps the limits; an end
after the limit by more than a second and one certificate is an overrun. Of both clocks the smaller counts: on
a busy machine the wall's is that of others, and processor time is that of all threads.

    python benchmarks/ending.py --count 300 --seed 0
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import pmlopt as pm
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.data.symmetry.orbit_mechanism import OrbitMechanism
from pmlopt.errors import PmloptError
from pmlopt.model.utility import DisplacementLoss
from pmlopt.programs import best_guaranteed_utility, failure_after_processing
from pmlopt.programs.program import Program

SHORTEST, LONGEST = 1e-3, 3.0
"""Seconds, between which the limits are drawn evenly in their logarithm."""

OVERRUN = 1.0
"""Seconds after the limit, in addition to those of one certificate, from which an end counts as late."""

RTOL = 1e-9
"""By which share of the limit a level that is computed anew may be above it, by the rounding of this page."""


@dataclass(frozen=True)
class Ending:
    """How a solve ended: its kind, its limit, its status or its error, and the seconds that it took."""

    kind: str
    limit: float
    status: str
    seconds: float
    processor: float
    certificate: float
    overrun: float
    kept: bool
    gap: float


def draw_prior(rng: np.random.Generator, size: int) -> pm.Prior:
    """Return a prior of counts."""
    counts = (rng.dirichlet(np.full(size, 2.0)) * 10_000).astype(int) + 1
    return pm.Prior.from_counts(counts, labels=range(size))


def draw_metric(rng: np.random.Generator, size: int) -> FloatArray:
    """Return the distances of points in the plane, or of a grid with steps along its streets."""
    side = math.isqrt(size)
    if rng.random() < 0.5:
        places = np.array([(i, j) for i in range(side) for j in range(side)], dtype=float)
        return np.asarray(np.abs(places[:, None] - places).sum(axis=2))
    points = rng.random((size, 2)) * side
    apart = np.linalg.norm(points[:, None] - points, axis=2)
    return np.asarray(np.maximum(apart, apart.T))


def metric(size: int) -> Callable[[np.random.Generator], Program[Any]]:
    """Return the drawing of a design under metric privacy."""

    def draw(rng: np.random.Generator) -> Program[Any]:
        apart = draw_metric(rng, size)
        loss = apart if rng.random() < 0.7 else apart**2
        privacy = pm.MetricPrivacy(float(rng.choice([0.5, 1.0, 2.0])), apart)
        return pm.design(draw_prior(rng, size), privacy, pm.ExpectedLoss(loss))

    return draw


def linear(
    privacy: Callable[[pm.Prior], Any], *sizes: int
) -> Callable[[np.random.Generator], Program[Any]]:
    """Return the drawing of a design with random losses under a requirement."""

    def draw(rng: np.random.Generator) -> Program[Any]:
        size = int(rng.choice(sizes))
        prior = draw_prior(rng, size)
        return pm.design(prior, privacy(prior), pm.ExpectedLoss(rng.random((size, size))))

    return draw


def constrained(rng: np.random.Generator) -> Program[Any]:
    """Draw a design with constraints of a person's own that some mechanism meets."""
    size = int(rng.choice([10, 30, 60]))
    prior = draw_prior(rng, size)
    program: Any = pm.design(prior, pm.PML(1.0), pm.ExpectedLoss(rng.random((size, size))))
    if rng.random() < 0.5:
        own: Program[Any] = program.with_constraints(
            floor=program.variables["output_law"] >= 0.2 / size
        )
        return own
    return pm.design(
        prior,
        pm.LDP(1.0),
        pm.ExpectedLoss(1 - np.eye(size)),
        constraints=[pm.constraints.Invariant()],
    )


def orbits(rng: np.random.Generator) -> Program[Any]:
    """Draw a design by orbits."""
    kind = rng.integers(3)
    if kind == 0:
        return pm.design(
            pm.IIDPrior([0.7, 0.3], int(rng.choice([20, 40]))),
            pm.PML(1.0),
            pm.CoordinateLoss(1 - np.eye(2)),
        )
    if kind == 1:
        return pm.design(
            pm.IIDPrior([0.5, 0.3, 0.2], int(rng.choice([6, 9]))),
            pm.PML(1.0),
            pm.CoordinateLoss(1 - np.eye(3)),
        )
    size = int(rng.choice([101, 401]))
    return pm.design(
        pm.CirclePrior(size), pm.LDP(1.0), DisplacementLoss([min(k, size - k) for k in range(size)])
    )


def about_secret(rng: np.random.Generator) -> Program[Any]:
    """Draw a design under a limit on the leakage about a secret."""
    size = int(rng.choice([12, 40]))
    secret = pm.Secret.from_counts(rng.integers(1, 50, (3, size)))
    utility = pm.MutualInformation() if rng.random() < 0.3 else pm.ExpectedLoss(1 - np.eye(size))
    return pm.design(secret.prior, pm.PML(0.3, about=secret), utility)


def ranks(rng: np.random.Generator, size: int) -> FloatArray:
    """Return the orders of outputs by utility, one for each letter."""
    return np.asarray(rng.permuted(np.tile(np.arange(size), (size, 1)), axis=1) + 1)


def other(rng: np.random.Generator) -> Program[Any]:
    """Draw a program of one of the kinds that are no designs with expected or informative utilities."""
    kind, size = int(rng.integers(11)), int(rng.choice([8, 20, 40]))
    prior = draw_prior(rng, size)
    channel = rng.dirichlet(np.ones(size), size)
    query = pm.queries.ModularSum(int(rng.choice([6, 12])), 4)
    made: list[Callable[[], Program[Any]]] = [
        lambda: pm.least_leakage(prior, pm.ExpectedGain(np.eye(size)), expected=0.5),
        lambda: pm.least_leakage(
            pm.IIDPrior([0.7, 0.3], 12), pm.CoordinateLoss(1 - np.eye(2)), expected=0.5
        ),
        lambda: pm.worst_case_utility(prior, ranks(rng, size), size // 2),
        lambda: pm.best_worst_case(prior, ranks(rng, size), 1.0),
        lambda: best_guaranteed_utility(prior, pm.ExpectedGain(rng.random((size, size))), 1.0),
        lambda: pm.envelope(prior, channel, 0.01),
        lambda: failure_after_processing(prior, channel, 0.5),
        lambda: pm.envelope_design(
            draw_prior(rng, 6), 0.5, 0.05, pm.ExpectedLoss(rng.random((6, 6)))
        ),
        lambda: pm.record_leakage(query, pm.queries.laplace(query, 1.0), 2.0),
        lambda: pm.leakage_distortion(query, 0.2, 4.0),
        lambda: pm.distortion_leakage(query, 0.2, 4.0),
    ]
    return made[kind]()


def estimation(rng: np.random.Generator) -> Program[Any]:
    """Draw a design for estimation."""
    size = int(rng.choice([8, 16, 30]))
    return pm.design(
        draw_prior(rng, size), pm.PML(1.0) if size == 30 else pm.LDP(1.0), pm.EstimationError()
    )


def information(*sizes: int, ball: bool = False) -> Callable[[np.random.Generator], Program[Any]]:
    """Return the drawing of a design with mutual information."""

    def draw(rng: np.random.Generator) -> Program[Any]:
        prior = draw_prior(rng, int(rng.choice(sizes)))
        over = pm.L1Ball(prior, 0.2) if ball else None
        return pm.design(prior, pm.PML(0.7, over=over), pm.MutualInformation())

    return draw


KINDS: dict[str, Callable[[np.random.Generator], Program[Any]]] = {
    "metric 16": metric(16),
    "metric 49": metric(49),
    "metric 144": metric(144),
    "metric 400": metric(400),
    "pml": linear(lambda _: pm.PML(1.0), 20, 120, 400),
    "ldp": linear(lambda _: pm.LDP(1.0), 20, 60, 200),
    "renyi": linear(lambda _: pm.RenyiPML(2.0, 0.5), 10, 30),
    "max-alpha": linear(lambda _: pm.MaximalAlphaLeakage(2.0, 0.5), 10, 20),
    "approximate": linear(lambda _: pm.ApproximatePML(1.0, 0.01), 10, 40),
    "ball": linear(lambda prior: pm.PML(1.0, over=pm.L1Ball(prior, 0.05)), 20, 60, 144),
    "both": linear(lambda _: pm.PML(0.8) & pm.LDP(1.5), 12, 60),
    "constraints": constrained,
    "orbits": orbits,
    "secret": about_secret,
    "information": information(40, 200),
    "information ball": information(12, 16, ball=True),
    "estimation": estimation,
    "other": other,
}
"""Drawings of programs, by the names of their kinds."""


def is_within_limits(program: Any, result: Any) -> bool:
    """Return whether the levels of the mechanism, computed anew from its matrix, keep the limits."""
    privacy, matrix = (
        getattr(program, "privacy", None),
        getattr(result.certificate, "mechanism", None),
    )
    if privacy is None or matrix is None or isinstance(matrix, OrbitMechanism):
        return bool(result.certificate.verify())
    rows = np.asarray(matrix.matrix)
    if not np.allclose(rows.sum(axis=1), 1, atol=1e-12) or rows.min() < 0:
        return False
    if isinstance(privacy, pm.MetricPrivacy):
        return is_within_metric(rows, privacy.epsilon, np.asarray(privacy.distance))
    levels = privacy.levels(program.prior, pm.Mechanism(rows))
    return all(levels[name] <= limit * (1 + RTOL) + 1e-12 for name, limit in privacy.limits.items())


def is_within_metric(rows: FloatArray, epsilon: float, distance: FloatArray) -> bool:
    """Return whether every ratio of two entries of a column is at most e to epsilon times the distance."""
    occurring = rows[:, rows.max(axis=0) > 0]
    if occurring.min() <= 0:
        return False
    logs = np.log(occurring)
    return all(
        float((logs[x] - logs - epsilon * distance[x][:, None]).max())
        <= RTOL * (1 + epsilon * distance.max())
        for x in range(len(logs))
    )


def end(kind: str, program: Program[Any], limit: float) -> Ending:
    """Solve within a limit, and say how that ended."""
    wall, processor = time.perf_counter(), time.process_time()
    certificate, kept, gap = 0.0, False, math.nan
    try:
        result = pm.solve(program, time_limit=limit)
        status = result.status.value
    except PmloptError as error:
        result, status = None, f"{type(error).__name__}: {error}"[:200]
    seconds, used = time.perf_counter() - wall, time.process_time() - processor
    if result is not None:
        certificate, gap = result.timings.certify, float(result.gap)
        kept = is_within_limits(program, result)
        certificate *= min(1.0, used / seconds)  # both in the clock that counts
    overrun = min(seconds, used) - limit - certificate
    return Ending(kind, limit, status, seconds, used, certificate, overrun, kept, gap)


def endings(count: int, seed: int, kinds: list[str]) -> Iterator[Ending]:
    """Draw so many programs and limits, and yield how each solve ended."""
    rng = np.random.default_rng(seed)
    for place in range(count):
        kind = kinds[place % len(kinds)]
        limit = float(np.exp(rng.uniform(math.log(SHORTEST), math.log(LONGEST))))
        yield end(kind, KINDS[kind](rng), limit)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the solves, and print what was late, what was not kept, and a sum for each kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--json", type=Path, help="where to write every ending, a line each")
    given = parser.parse_args(argv)
    found: list[Ending] = []
    for one in endings(given.count, given.seed, given.only):
        found.append(one)
        if given.json is not None:
            with given.json.open("a") as stream:
                stream.write(json.dumps(asdict(one)) + "\n")
        if one.overrun > OVERRUN or not one.kept:
            print(
                f"{one.kind}, {one.limit:.3g} s: {one.status}, {one.overrun:.2f} s over", flush=True
            )
    for kind in given.only:
        own = [one for one in found if one.kind == kind]
        if own:
            worst, proof = max(one.overrun for one in own), max(one.certificate for one in own)
            kept = sum(one.kept for one in own)
            print(
                f"{kind}: {kept} of {len(own)} kept, at most {worst:.2f} s over, a certificate {proof:.2f} s"
            )
    late = sum(one.overrun > OVERRUN for one in found)
    kept = sum(one.kept for one in found)
    print(f"{kept} of {len(found)} end with a mechanism within its limits, {late} late")


if __name__ == "__main__":
    main()
