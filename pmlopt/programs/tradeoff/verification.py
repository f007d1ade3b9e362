"""The claims on a trade-off of leakage and distortion computed again in decimal arithmetic."""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import TYPE_CHECKING

from pmlopt.exact.decimals import DIGITS, Rows, dot, has_entropy, stochastic, table_of, total
from pmlopt.programs.record_leakage.verification import verified
from pmlopt.programs.tradeoff.certificate import only_constants

if TYPE_CHECKING:
    from pmlopt.programs.tradeoff.certificate import Cut, DistortionCertificate


_NEAR = Decimal(2) ** -46
"""What rounding may do to a distortion, over its size: products and sums of a few floats."""


def tradeoff_verified(certificate: DistortionCertificate) -> bool:
    """Whether every part of a trade-off's claims holds; see `DistortionCertificate.verify`."""
    if certificate.proof is None or not verified(certificate.audit):
        return False
    with localcontext() as context:
        context.prec = DIGITS
        losses = table_of(certificate.tradeoff.losses)
        rows = table_of(certificate.mechanism.matrix)
        spent = total(dot(row, cost) for row, cost in zip(rows, losses, strict=True))
        slack = _NEAR * total(max(cost) for cost in losses)
        limit, bound = Decimal(certificate.limit), Decimal(certificate.bound)
        if abs(spent - Decimal(certificate.distortion)) > slack or not _priors_hold(certificate):
            return False
        if certificate.sense == "leakage":
            return (
                spent <= limit + slack
                and _support_holds(certificate)
                and _least(certificate, losses) >= bound
            )
        within = Decimal(certificate.audit.bound) <= limit
        return within and _least(certificate, losses) + slack >= bound


def _priors_hold(certificate: DistortionCertificate) -> bool:
    """Whether the priors of the bound have the entropy."""
    assert certificate.proof is not None
    query = certificate.orbits.query
    return all(
        has_entropy(cut.joint, query.log_counts(cut.record), certificate.entropy, query.log_size)
        for cut in certificate.proof.cuts
    )


def _support_holds(certificate: DistortionCertificate) -> bool:
    """Whether rows may be kept on their cheapest outputs: at the least distortion of all."""
    tradeoff = certificate.tradeoff
    least = float(tradeoff.losses.min(axis=1).sum())
    return bool(tradeoff.allowed.all() or certificate.limit <= least * (1 + 1e-11))


def _least(certificate: DistortionCertificate, losses: Rows) -> Decimal:
    """`tradeoff_bound` in decimals; where constants alone leak nothing, the best of them."""
    assert certificate.proof is not None
    leakage = certificate.sense == "leakage"
    if (
        not leakage
        and certificate.limit == 0
        and only_constants(certificate.orbits.query, certificate.entropy)
    ):
        return min(total(column) for column in zip(*losses, strict=True))
    weights = [Decimal(cut.weight) for cut in certificate.proof.cuts]
    scale = total(weights) if leakage else Decimal(1)
    if leakage and scale <= 0:
        return Decimal(0)
    price = Decimal(certificate.proof.price) / scale if leakage else Decimal(1)
    worth = [[price * cost for cost in row] for row in losses]
    for cut, weight in zip(certificate.proof.cuts, weights, strict=True):
        for row, gains in zip(worth, _gains(cut), strict=True):
            row[:] = [w + weight / scale * gain for w, gain in zip(row, gains, strict=True)]
    offset = (price if leakage else total(weights)) * Decimal(certificate.limit)
    allowed = certificate.tradeoff.allowed.tolist()
    found = total(
        min(w for w, ok in zip(*pair, strict=True) if ok) for pair in zip(worth, allowed, strict=True)
    )
    return max(Decimal(0), found - offset)


def _gains(cut: Cut) -> Rows:
    """`sum_a J(a,k) log(psi(a|y) / pi_a)` of one prior, for each class k and output y."""
    width = cut.joint.shape[1]
    flat = stochastic(cut.joint.reshape(1, -1))[0]
    posterior = zip(*stochastic(cut.posterior.T), strict=True)
    gains = [[Decimal(0)] * cut.posterior.shape[1] for _ in range(width)]
    for letter, laws in enumerate(posterior):
        part = flat[letter * width : (letter + 1) * width]
        mass = total(part)
        if mass > 0:
            logs = [(psi / mass).ln() for psi in laws]
            for row, weight in zip(gains, part, strict=True):
                row[:] = [gain + weight * log for gain, log in zip(row, logs, strict=True)]
    return gains
