"""The claims on the leakage per record computed again in decimal arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING

import numpy as np

from pmlopt.exact.decimals import (
    DIGITS,
    Rows,
    decimals,
    dot,
    has_entropy,
    log_sum,
    mixed,
    normalised,
    phi,
    stochastic,
    table_of,
    total,
)
from pmlopt.measures.record_information import uniform_alone
from pmlopt.programs.record_leakage.covering import covers, covers_rows

if TYPE_CHECKING:
    from pmlopt.programs.record_leakage.certificate import KindProof, RecordCertificate, Region


_LAST = Decimal(10) ** -40
"""What the last of 50 digits may hide of an information that is a sum of cancelling terms."""


def verified(certificate: RecordCertificate) -> bool:
    """Whether every part of the claim holds; see `RecordCertificate.verify`."""
    with localcontext() as context:
        context.prec = DIGITS
        rows = stochastic(certificate.channel.rows)
        return (
            certificate.value <= certificate.bound
            and _prior_holds(certificate, rows)
            and bool(certificate.proofs)
            and all(_kind_holds(certificate, kind, rows) for kind in certificate.proofs)
            and {kind.record for kind in certificate.proofs} >= set(certificate.channel.query.kinds)
        )


def _prior_holds(certificate: RecordCertificate, rows: Rows) -> bool:
    """Whether the prior has the entropy, up to what one float can say, and leaks the value."""
    log_counts = certificate.channel.log_counts(certificate.record)
    if not has_entropy(
        certificate.joint, log_counts, certificate.entropy, certificate.channel.query.log_size
    ):
        return False
    joint = stochastic(certificate.joint.reshape(1, -1))[0]
    return _leaked(joint, rows) >= Decimal(certificate.value) - _LAST


def _leaked(joint: Sequence[Decimal], rows: Rows) -> Decimal:
    """I(X_i; Y) where (X_i, T) has a law, given letter by letter."""
    width = len(rows)
    parts = [joint[at : at + width] for at in range(0, len(joint), width)]
    outputs = [mixed(part, rows) for part in parts]
    masses = [total(part) for part in parts]
    law = [total(column) for column in zip(*outputs, strict=True)]
    return total(
        output * (output / (mass * alone)).ln()
        for mass, laws in zip(masses, outputs, strict=True)
        for output, alone in zip(laws, law, strict=True)
        if output > 0
    )


def _kind_holds(certificate: RecordCertificate, kind: KindProof, rows: Rows) -> bool:
    """Whether the regions that count cover every law and none has a larger bound."""
    if not np.array_equal(kind.log_counts, certificate.channel.log_counts(kind.record)):
        return False
    if len(rows) == 1 or len(kind.log_counts) == 1:
        return True  # nothing can leak
    if not kind.regions:
        uniform = [Decimal(count).exp() for count in kind.log_counts.ravel().tolist()]
        size = total(uniform)
        leaked = _leaked([each / size for each in uniform], rows)
        whole = uniform_alone(certificate.entropy, certificate.channel.query.log_size)
        return whole and leaked <= Decimal(certificate.bound) + _LAST
    return _regions_hold(certificate, kind, rows)


def _regions_hold(certificate: RecordCertificate, kind: KindProof, rows: Rows) -> bool:
    """Whether the regions are a tree whose leaves cover every law, each within the bound."""
    children: dict[int, list[Region]] = {}
    for region in kind.regions:
        children.setdefault(region.parent, []).append(region)
    firsts = children.pop(-1, [])
    if len(firsts) != 1 or firsts[0] is not kind.regions[0]:
        return False
    if not covers_rows(firsts[0].cell, certificate.channel.rows, kind.log_counts):
        return False
    for place, region in enumerate(kind.regions):
        parts = children.get(place)
        if parts is None:
            if _bound(kind, certificate.entropy, region, rows) > Decimal(certificate.bound):
                return False
        elif not covers(region, parts):
            return False
    return True


def _bound(kind: KindProof, entropy: float, region: Region, rows: Rows) -> Decimal:
    """`leakage_bound` in decimals."""
    proof = region.proof
    law = normalised(proof.log_law)
    share, letters = Decimal(proof.share), [Decimal(0)] * len(region.cell)
    if not 0 <= proof.share <= 1 or (proof.share < 1 and proof.log_letters is None):
        return Decimal("Infinity")
    if proof.log_letters is not None:
        letters = normalised(proof.log_letters)
    exponents, counts = [], []
    for letter, vertices in enumerate(region.cell):
        slope = decimals(proof.slopes[letter])
        lift = max(phi(vertex) - dot(vertex, slope) for vertex in table_of(vertices))
        worth = [mu + lift - r for mu, r in zip(slope, law, strict=True)]
        for row, count in zip(rows, kind.log_counts[letter].tolist(), strict=True):
            if np.isfinite(count):
                exponents.append(share * dot(row, worth) - (1 - share) * letters[letter])
                counts.append(Decimal(count))
    peak, price = max(exponents), Decimal(proof.price)
    if price <= 0:
        return peak
    terms = (count + (g - peak) / price for g, count in zip(exponents, counts, strict=True))
    return peak + price * (log_sum(list(terms)) - Decimal(entropy))
