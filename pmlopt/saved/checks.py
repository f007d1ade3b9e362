"""The claims of each kind of certificate, checked one by one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pmlopt.arrays import rounding_of
from pmlopt.programs.continuous.bins_certificate import BinsCertificate
from pmlopt.programs.design_certificate import DesignCertificate
from pmlopt.programs.envelope.certificate import ClosedFailureCertificate, EnvelopeCertificate
from pmlopt.programs.envelope_design.certificate import EnvelopeDesignCertificate
from pmlopt.programs.estimation.certificate import EstimationCertificate
from pmlopt.programs.estimation.column_relaxation import Relaxation, relaxed_bound
from pmlopt.programs.estimation.design_columns import design_columns
from pmlopt.programs.estimation.information_bound import information_bound
from pmlopt.programs.least_leakage.certificate import LevelCertificate
from pmlopt.programs.linear.certificate import LinearCertificate
from pmlopt.programs.linear.dual_bound import proved_bound, raw_bound, rounding_in
from pmlopt.programs.linear.methods import RESIDUAL
from pmlopt.programs.record_leakage.certificate import RecordCertificate
from pmlopt.programs.subconvex.allowed_columns import column_space
from pmlopt.programs.subconvex.certificate import ColumnCertificate
from pmlopt.programs.symmetric.certificate import SymmetricCertificate
from pmlopt.programs.symmetric_leakage.certificate import SymmetricLevelCertificate
from pmlopt.programs.tradeoff.certificate import TradeoffCertificate
from pmlopt.programs.worst_case.certificate import ThresholdCertificate
from pmlopt.result import Certificate
from pmlopt.saved.orbit_checks import symmetric, symmetric_level
from pmlopt.saved.parts import SHARE, bound_part, gap_part, level_part, matrix_part, no_bound, value_part
from pmlopt.saved.verdict import DECIMAL, FLOATS, RATIONAL, Part
from pmlopt.utility import INFORMATIONS, EstimationError
from pmlopt.utility.linear import expectation


def parts_of(certificate: Certificate) -> tuple[Part, ...]:
    """All parts of what a certificate claims, each decided again from its numbers."""
    return tuple(CHECKS[type(certificate)](certificate))


def _design(certificate: DesignCertificate) -> list[Part]:
    privacy, mechanism = certificate.privacy, certificate.mechanism
    return [
        matrix_part(mechanism),
        level_part(certificate.prior, privacy, mechanism, certificate.statement),
    ]


def linear(certificate: LinearCertificate) -> Sequence[Part]:
    """Level, value and bound of an expected gain or loss."""
    prior, matrix = certificate.prior, certificate.mechanism.matrix
    sign = 1.0 if certificate.maximised else -1.0
    rounding = rounding_of(sum(matrix.shape), float(np.abs(certificate.table).max()))
    found = [
        *_design(certificate),
        value_part(certificate.value, expectation(prior, certificate.table, matrix), rounding),
        *_added(certificate),
    ]
    if certificate.multipliers is None:
        return [*found, no_bound(certificate), gap_part(certificate, rounding)]
    proved = certificate.constant + _proved(certificate)
    bound = bound_part(certificate.bound, sign * proved, certificate.maximised)
    if certificate.added is None and bound.holds and math.isfinite(certificate.bound):
        bound = Part("bound", None, FLOATS, "it rests on constraints that are not in the file")
    return [*found, bound, gap_part(certificate, rounding)]


def continuous(certificate: BinsCertificate) -> Sequence[Part]:
    """What is said of the bins; what rests on the law of the secret, which no file holds, is not checked."""
    mechanism, bins = certificate.mechanism, certificate.bins
    same = certificate.value == bins.value
    text = "it is the loss on the bins" if same else "it is not the loss on the bins"
    boxes = certificate.fits
    fit = f"{mechanism.matrix.shape[0]} rows, {mechanism.matrix.shape[1]} outputs and one multiplier for each"
    slack = rounding_of(2, abs(certificate.value))
    within = certificate.bound <= certificate.value + slack and certificate.gap >= 0
    close = abs(certificate.gap - max(0.0, certificate.value - certificate.bound)) <= slack
    return [
        *linear(bins),
        Part("value of the secret", same, FLOATS, text),
        Part("bins", boxes, FLOATS, f"{fit} bin of the grid" if boxes else "the grid has other bins"),
        Part("gap of the secret", within and close, FLOATS, f"{certificate.gap:.3g}"),
        Part("law", None, FLOATS, "the law is not in the file: nothing says that the bins have these "
             f"probabilities and losses, and that no mechanism loses less than {certificate.bound:.9g}"),
    ]  # fmt: skip


def _proved(certificate: LinearCertificate) -> float:
    """What the multipliers and the witness prove, of the gains alone."""
    prior, privacy, gains = certificate.prior, certificate.privacy, certificate.gains
    assert certificate.multipliers is not None
    rho = certificate.multipliers
    if certificate.witness:
        return proved_bound(prior, privacy, gains, rho, certificate.witness, SHARE)
    return raw_bound(prior, privacy, gains, rho) + SHARE * rounding_in(prior, privacy, gains, rho)


def _added(certificate: LinearCertificate) -> list[Part]:
    """That the mechanism keeps the constraints that were added, as far as the file says."""
    found = []
    for one in certificate.added or ():
        allowed = min(float(certificate.residuals.get(one.name, 0.0)), RESIDUAL) * one.unit
        size = float(np.abs(one.coefficients).sum(axis=(1, 2)).max() + np.abs(one.offset).max())
        broken = one.violation(certificate.mechanism.matrix)
        holds = broken <= allowed + rounding_of(one.coefficients[0].size, size)
        text = f"is kept, up to {allowed:.1g}" if holds else f"is broken by {broken:.1g}"
        found.append(Part("constraint", holds, FLOATS, f"{one.name!r} {text}"))
    return found


def subconvex(certificate: ColumnCertificate) -> Sequence[Part]:
    """Level, value and bound of a sub-convex utility, the extreme columns priced again."""
    prior, mechanism, parts = certificate.prior, certificate.mechanism, _design(certificate)
    if certificate.utility not in INFORMATIONS:
        text = f"the utility {certificate.utility!r} is a function, which no file holds"
        return [*parts, Part("value", None, FLOATS, text), Part("bound", None, FLOATS, text),
                gap_part(certificate, 1e-14 * max(1.0, abs(certificate.value)))]  # fmt: skip
    utility = INFORMATIONS[certificate.utility]()
    space = column_space(prior, certificate.privacy, utility)
    rounding = rounding_of(sum(mechanism.matrix.shape), max(1.0, abs(space.everything)))
    parts.append(value_part(certificate.value, utility.value(prior, mechanism), rounding))
    rho = certificate.multipliers
    if rho is None or rho.shape != (prior.size,):
        return [*parts, no_bound(certificate), gap_part(certificate, rounding)]
    if np.array_equal(rho, space.released):
        proved = space.everything_bound
    else:
        proved = space.bound(rho, certificate.bound, None)[0]
    slack = SHARE * space.blur
    return [*parts, bound_part(certificate.bound, proved - slack, True), gap_part(certificate, rounding)]


def estimation(certificate: EstimationCertificate) -> Sequence[Part]:
    """Level, value and bound of a design for estimation, its extreme columns listed again."""
    prior, privacy, criterion = certificate.prior, certificate.privacy, certificate.criterion
    wanted = certificate.workload
    utility = EstimationError(wanted if criterion == "A" else None, criterion)
    value = utility.value(prior, certificate.mechanism)
    rounding = 1e-9 * max(1.0, abs(value))
    parts = [*_design(certificate), value_part(certificate.value, value, rounding)]
    if certificate.multipliers is None:
        trivial = certificate.bound == 0.0 and criterion == "A"
        bound = Part("bound", True, RATIONAL, "no error is negative") if trivial else no_bound(certificate)
        return [*parts, bound, gap_part(certificate, rounding)]
    z, rho = certificate.sensitivities, certificate.multipliers
    columns = design_columns(prior, privacy)
    listed = columns.exact.shape[1] if columns.complete else None
    if listed != certificate.columns:
        proved = -math.inf
    elif listed is not None:
        proved = information_bound(columns.exact, prior.pmf, wanted, criterion, z, rho)
    else:
        proof = Relaxation(z, rho, certificate.products)
        proved = relaxed_bound(prior.pmf, wanted, criterion, columns.cones, proof)
    proved = max(proved, 0.0) if criterion == "A" else proved
    slack = rounding_of(prior.size, abs(certificate.bound))
    return [*parts, bound_part(certificate.bound, proved + slack, False), gap_part(certificate, rounding)]


def least_leakage(certificate: LevelCertificate) -> Sequence[Part]:
    """Level, demands and bound of a least leakage."""
    prior, matrix, mechanism = certificate.prior, certificate.mechanism.matrix, certificate.mechanism
    parts = [*_design(certificate), _pairs(certificate)]
    if certificate.floor is not None:
        short = -certificate.floor.slack(np.where(certificate.allowed, matrix, 0.0))
        holds = short <= certificate.floor.rounding
        text = f"the expected {certificate.floor.utility.what} {certificate.floor.value:.9g}"
        parts.append(Part("demand", holds, FLOATS, f"{text} is reached" if holds else f"{text} is missed"))
    value, level = certificate.value, certificate.privacy.level(prior, mechanism)
    sharp = value == certificate.privacy.epsilon and abs(level - value) <= 1e-12 * max(1.0, value)
    text = f"the level of the mechanism is {value:.12g}"
    parts.append(
        Part("value", sharp, FLOATS, text if sharp else f"{text}, it is said, and it is {level:.12g}")
    )
    proved = certificate.proved_again()
    arithmetic = RATIONAL if matrix.size <= 100 or certificate.privacy.over is not None else FLOATS
    bound = bound_part(certificate.bound, max(0.0, proved), False, arithmetic)
    return [*parts, bound, gap_part(certificate, 1e-15 * max(1.0, certificate.value))]


def _pairs(certificate: LevelCertificate) -> Part:
    broken = np.argwhere((certificate.mechanism.matrix != 0) & ~certificate.allowed)
    if not len(broken):
        return Part("pairs", True, RATIONAL, "no pair occurs that is not allowed")
    x, y = broken[0]
    names = certificate.mechanism
    return Part(
        "pairs", False, RATIONAL, f"{names.outputs[y]!r} occurs for {names.inputs[x]!r}, and must not"
    )


def worst_case(certificate: ThresholdCertificate) -> Sequence[Part]:
    """That the threshold is kept within the level, and that the next one leaks more."""
    holds, kept = certificate.verify(), certificate.kept
    text = f"{certificate.statement}; nothing above {certificate.bound:g} within {certificate.epsilon:g} nats"
    return [
        matrix_part(certificate.mechanism),
        level_part(kept.prior, kept.privacy, certificate.mechanism, kept.statement),
        *(part for part in least_leakage(kept) if part.name in ("pairs", "value", "bound", "gap")),
        *([] if certificate.beyond is None else _beyond(certificate.beyond)),
        Part("threshold", holds, RATIONAL, text if holds else "a part of the proof does not hold"),
    ]


def _beyond(proof: LevelCertificate) -> list[Part]:
    """That what is said of the threshold after the bound is so."""
    parts = least_leakage(proof)
    holds = all(part.holds for part in parts)
    return [Part("next threshold", holds, RATIONAL, "its mechanism and level are as they are said to be"
                 if holds else "; ".join(part.detail for part in parts if not part.holds))]  # fmt: skip


def envelope(certificate: EnvelopeCertificate | ClosedFailureCertificate) -> Sequence[Part]:
    """That the attack reaches the value, and that nothing exceeds the bound."""
    holds = certificate.verify()
    gap = abs(certificate.gap - abs(certificate.bound - certificate.value)) <= 1e-15 * max(
        1.0, certificate.bound
    )
    text = f"{certificate.statement}; a processing reaches {certificate.value:.9g}"
    return [
        Part("value and bound", holds, RATIONAL, text if holds else f"this is not proved: {text}"),
        Part("gap", gap, FLOATS, f"{certificate.gap:.3g}"),
    ]


def envelope_design(certificate: EnvelopeDesignCertificate) -> Sequence[Part]:
    """That nothing leaks more but with its probability, and that value and bound follow."""
    holds = certificate.verify()
    rounding = rounding_of(certificate.table.size, float(np.abs(certificate.table).max(initial=0.0)))
    text = certificate.statement if holds else "level, value or bound is not what follows from the file"
    return [
        matrix_part(certificate.mechanism),
        Part(
            "level, value and bound",
            holds,
            "rational arithmetic of the level, floats of value and bound",
            text,
        ),
        gap_part(certificate, rounding),
    ]


def record_leakage(certificate: RecordCertificate) -> Sequence[Part]:
    """That the prior leaks the value, and that no prior of the entropy exceeds the bound."""
    if math.isinf(certificate.bound):
        return [Part("bound", None, DECIMAL, "none is claimed, and without one nothing is verified")]
    holds = certificate.verify()
    text = f"{certificate.statement}; a prior reaches {certificate.value:.9g}"
    return [Part("value and bound", holds, DECIMAL, text if holds else f"this is not proved: {text}")]


def tradeoff(certificate: TradeoffCertificate) -> Sequence[Part]:
    """That the mechanism keeps its limit and leaks what is said, and that none betters the bound."""
    holds = certificate.verify()
    text = f"{certificate.statement}; no {certificate.sense} below {certificate.bound:.9g}"
    return [Part("value and bound", holds, DECIMAL, text if holds else f"this is not proved: {text}")]


CHECKS: Mapping[type[Certificate], Callable[[Any], Sequence[Part]]] = {
    LinearCertificate: linear,
    ColumnCertificate: subconvex,
    EstimationCertificate: estimation,
    LevelCertificate: least_leakage,
    ThresholdCertificate: worst_case,
    EnvelopeCertificate: envelope,
    ClosedFailureCertificate: envelope,
    EnvelopeDesignCertificate: envelope_design,
    RecordCertificate: record_leakage,
    TradeoffCertificate: tradeoff,
    SymmetricCertificate: symmetric,
    SymmetricLevelCertificate: symmetric_level,
    BinsCertificate: continuous,
}
"""Each kind of certificate with the check of its claims."""
