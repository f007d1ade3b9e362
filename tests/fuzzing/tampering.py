"""Saved results with one number changed: what a check must refuse, or find true all the same."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Iterator, Mapping
from typing import Any

import cvxpy as cp
import numpy as np

from pmlopt.core.numbers.arrays import BoolArray
from pmlopt.core.records.record import read_record
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.symmetry.orbit_mechanism import SavedOrbits, is_orbit_record
from pmlopt.model.utility import EstimationError, ExpectedGain, ExpectedLoss, list_informations
from pmlopt.programs.certificate import Certificate, DesignCertificate
from pmlopt.programs.compliance import ComplianceCertificate
from pmlopt.programs.designs import design
from pmlopt.programs.envelope.certificate import EnvelopeCertificate, ProcessedFailureCertificate
from pmlopt.programs.envelope.program import envelope, failure_after_processing
from pmlopt.programs.envelope_design.certificate import EnvelopeDesignCertificate
from pmlopt.programs.envelope_design.program import envelope_design
from pmlopt.programs.estimation.certificate import EstimationCertificate
from pmlopt.programs.least_leakage.certificate import LevelCertificate, SymmetricLevelCertificate
from pmlopt.programs.least_leakage.program import build_least_leakage, least_leakage
from pmlopt.programs.linear.certificate import (
    LinearCertificate,
    OrbitCertificate,
    SymmetricCertificate,
)
from pmlopt.programs.program import Program
from pmlopt.programs.record_leakage.certificate import RecordCertificate
from pmlopt.programs.record_leakage.program import record_leakage
from pmlopt.programs.solving import solve
from pmlopt.programs.subconvex.certificate import ColumnCertificate, ColumnCostCertificate
from pmlopt.programs.tradeoff.builders import distortion_leakage, leakage_distortion
from pmlopt.programs.tradeoff.certificate import TradeoffCertificate
from pmlopt.programs.worst_case.certificate import ThresholdCertificate
from pmlopt.verification.verify_saved import read_result_record

Path = tuple[str | int, ...]

RECORDS = ("timings", "iterations", "repair", "residuals", "samples", "version")
"""Numbers that tell how a result was found, or what the file is: they claim nothing."""

NAMES = ("inputs", "outputs", "labels", "values")
"""Names, which may be numbers."""

PROOFS = (
    "multipliers", "witness", "sensitivities", "products", "weight", "laws", "proof", "proofs", "margins",
    "attack", "joint", "beyond",
)  # fmt: skip
"""Numbers that prove and do not claim: with others the claims are what they were."""

TOLERANCE = 1e-6
"""How far the optimum that a solver finds again may be off, as a share of its size or of one."""


def leaves(data: Any, path: Path = ()) -> Iterator[Path]:
    """The places of all numbers of a saved result that claim or prove something.

    Examples:
        >>> list(leaves({"matrix": [[1.0]], "timings": {"solve": 1.0}, "named": True}))
        [('matrix', 0, 0)]
    """
    if isinstance(data, dict):
        for key, value in data.items():
            if key not in (*RECORDS, *NAMES):
                yield from leaves(value, (*path, key))
    elif isinstance(data, list):
        for place, value in enumerate(data):
            yield from leaves(value, (*path, place))
    elif isinstance(data, int) and {"pairs", "moves"} & set(path):
        return  # places of letters and values, not numbers
    elif isinstance(data, int | float) and not isinstance(data, bool):
        yield path


def changed(data: Any, path: Path, by: float) -> Any:
    """A copy with the number at a place changed by a share of its size, or by that much where it is 0.

    Whole numbers stay whole, and change by at least one.
    """
    made = copy.deepcopy(data)
    place = made
    for key in path[:-1]:
        place = place[key]
    old = place[path[-1]]
    step = by * (abs(old) or 1.0)
    if isinstance(old, int):
        place[path[-1]] = old + int(math.copysign(max(1, abs(round(step))), by))
    else:
        place[path[-1]] = (
            old + step if old + step != old else math.nextafter(old, math.copysign(math.inf, by))
        )
    return made


FOREIGN: tuple[Any, ...] = (None, True, "1e999999999", -1e308, 3e8, 10**30, [], {}, 0)
"""What is put in the place of a value."""


def places(data: Any, path: Path = ()) -> Iterator[Path]:
    """The places of everything in a saved result: tables, lists, numbers, labels and flags.

    Examples:
        >>> list(places({"a": [True], "b": 2}))
        [(), ('a',), ('a', 0), ('b',)]
    """
    yield path
    items: Any = (
        data.items()
        if isinstance(data, dict)
        else enumerate(data)
        if isinstance(data, list)
        else ()
    )
    for key, value in items:
        yield from places(value, (*path, key))


def mutated(data: Any, path: Path, rng: random.Random) -> Any:
    """A copy in which what stands at a place is another thing: a key more or less, a flag, a label, a number.

    Args:
        data: of a JSON file.
        path: one of its places.
        rng: which decides what stands there.
    """
    made = {"": copy.deepcopy(data)}
    owner: Any = made
    *way, last = ("", *path)
    for key in way:
        owner = owner[key]
    old = owner[last]
    if isinstance(old, dict) and rng.random() < 0.8:
        key = rng.choice([*old, "epsilon", "set"])
        owner[last] = {name: value for name, value in old.items() if name != key}
        if key not in old:
            owner[last][key] = 0.001
    elif isinstance(old, list) and old and rng.random() < 0.8:
        owner[last] = rng.choice([old[:-1], [*old, old[0]], [old[0], *old[:-1]]])
    elif isinstance(old, bool) and rng.random() < 0.8:
        owner[last] = not old
    elif isinstance(old, str) and rng.random() < 0.8:
        owner[last] = f"{old} "
    else:
        owner[last] = rng.choice(FOREIGN)
    return made[""]


def tells_nothing(path: Path) -> bool:
    """Whether a place holds how a result was found, which claims nothing."""
    told = ("solver", "reason", "attempts", "warm_started", "timings", "iterations")
    return bool({"repair", "residuals"} & set(path)) or path[1:2] in [(name,) for name in told]


def is_proof(path: Path) -> bool:
    """Whether a place holds a number that proves, so that a change leaves all claims as they are."""
    return any(key in PROOFS for key in path)


def still_true(data: Any) -> bool:
    """Whether what a saved result claims is true, by solving its program again: level, value and bound.

    Args:
        data: of a JSON file, which a check has accepted.
    """
    mechanism = _mechanism(data)
    certificate = read_result_record(mechanism, data["metadata"], "the file").certificate
    if isinstance(certificate, ThresholdCertificate):
        return _keeps_threshold(certificate)
    if isinstance(certificate, ComplianceCertificate):  # no bound: the level is all there is
        levels = certificate.privacy.levels(certificate.prior, mechanism)
        highest = abs(certificate.value - max(levels.values())) <= TOLERANCE
        return (
            highest
            and certificate.bound == math.inf
            and _within(levels, certificate.privacy.limits)
        )
    program = restated(certificate)
    if isinstance(certificate, TradeoffCertificate) and certificate.value == certificate.bound == 0:
        return certificate.violation == 0  # no leakage or distortion is negative
    if program is None:
        return False
    again = solve(program)
    sign = 1.0 if program.maximised else -1.0
    room = TOLERANCE * max(1.0, abs(again.value))
    if isinstance(certificate, DesignCertificate):
        levels = certificate.privacy.levels(certificate.prior, mechanism)
        if not _within(levels, certificate.privacy.limits):
            return False
    if isinstance(certificate, OrbitCertificate):
        listed = certificate.privacy.levels(
            certificate.mechanism.space.prior.listed(), mechanism.listed()
        )
        if not _within(listed, certificate.privacy.limits):
            return False
    reached = sign * certificate.value <= sign * again.bound + room
    return reached and sign * certificate.bound >= sign * again.value - room


def _mechanism(data: Any) -> Any:
    """The mechanism of a JSON file, by orbits or as a matrix."""
    if is_orbit_record(data):
        return read_record(SavedOrbits, data).mechanism
    sides = (None if side in data["unnamed"] else data[side] for side in ("inputs", "outputs"))
    return Mechanism(data["matrix"], *sides)


def _within(levels: Mapping[str, float], limits: Mapping[str, float]) -> bool:
    return all(levels[name] <= limit + 1e-9 for name, limit in limits.items())


def restated(certificate: Certificate) -> Program[Any] | None:
    """The program whose answer a certificate is; None for kinds that are not restated here."""
    if isinstance(certificate, LinearCertificate):
        return _linear(certificate)
    if isinstance(certificate, ColumnCertificate | ColumnCostCertificate):
        return design(
            certificate.prior, certificate.privacy, list_informations()[certificate.utility]()
        )
    if isinstance(certificate, EstimationCertificate):
        wanted = certificate.workload if certificate.criterion == "A" else None
        return design(
            certificate.prior, certificate.privacy, EstimationError(wanted, certificate.criterion)
        )
    if isinstance(certificate, SymmetricCertificate | SymmetricLevelCertificate):
        return _by_orbits(certificate)
    if isinstance(certificate, LevelCertificate):
        return _level(certificate)
    if isinstance(certificate, EnvelopeCertificate):
        return envelope(
            certificate.prior, certificate.mechanism, certificate.delta, over=certificate.over
        )
    if isinstance(certificate, ProcessedFailureCertificate):
        over = certificate.over
        return failure_after_processing(
            certificate.prior, certificate.mechanism, certificate.epsilon, over=over
        )
    if isinstance(certificate, EnvelopeDesignCertificate):
        utility = (ExpectedGain if certificate.maximised else ExpectedLoss)(certificate.table)
        return envelope_design(certificate.prior, certificate.epsilon, certificate.delta, utility)
    return _of_query(certificate)


def _of_query(certificate: Certificate) -> Program[Any] | None:
    """The program about the records of a query; of a trade-off one with the loss that was left out."""
    if isinstance(certificate, RecordCertificate):
        return record_leakage(certificate.channel.query, certificate.mechanism, certificate.entropy)
    if isinstance(certificate, TradeoffCertificate):
        build = leakage_distortion if certificate.sense == "leakage" else distortion_leakage
        return build(certificate.query, certificate.limit, certificate.entropy)
    return None


def _by_orbits(certificate: SymmetricCertificate | SymmetricLevelCertificate) -> Program[Any]:
    """The same program letter by letter, on a plain prior: orbits have no part in it."""
    space = certificate.mechanism.space
    prior = space.prior.listed()
    utility = (ExpectedGain if certificate.maximised else ExpectedLoss)(
        certificate.table[space.list_orbits()]
    )
    if isinstance(certificate, SymmetricLevelCertificate):
        return least_leakage(prior, utility, expected=certificate.expected)
    return design(prior, certificate.privacy, utility)


def _level(certificate: LevelCertificate) -> Program[Any] | None:
    outputs, floor = certificate.mechanism.outputs, certificate.normalized_floor
    if floor is None:
        over = certificate.privacy.over
        return build_least_leakage(certificate.prior, certificate.allowed, outputs, over)
    if not certificate.allowed.all():
        return None
    asked = floor.expected
    utility = (ExpectedGain if asked.maximised else ExpectedLoss)(asked.table)
    return least_leakage(certificate.prior, utility, expected=asked.value, outputs=outputs)


def _keeps_threshold(certificate: ThresholdCertificate) -> bool:
    """Whether a threshold is kept within the level, and the next one is not, by solving for both."""
    prior, outputs = certificate.kept.prior, certificate.mechanism.outputs
    over = certificate.kept.privacy.over

    def least(allowed: BoolArray) -> float:
        if not allowed.any(axis=1).all():
            return math.inf
        return solve(build_least_leakage(prior, allowed, outputs, over)).value

    kept = least(certificate.order >= certificate.threshold) <= certificate.epsilon + TOLERANCE
    return (
        kept
        and least(certificate.order > certificate.max_possible_rank)
        > certificate.epsilon - TOLERANCE
    )


def _linear(certificate: LinearCertificate) -> Program[Any]:
    utility = (ExpectedGain if certificate.maximised else ExpectedLoss)(certificate.table)
    program = design(certificate.prior, certificate.privacy, utility, certificate.mechanism.outputs)
    added = {}
    for one in certificate.added_rows or ():
        rows = [cp.sum(cp.multiply(row, program.mechanism)) for row in one.coefficients]
        sides = cp.hstack(rows) + np.asarray(one.offset)
        added[one.name] = sides == 0 if one.equal else sides <= 0
    return program.with_constraints(**added) if added else program
