"""The claims of mechanisms by orbits, checked one by one, without a list of letters."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from pmlopt.arrays import rounding_of
from pmlopt.programs.design_certificate import levels_in_words
from pmlopt.programs.symmetric.certificate import SymmetricCertificate
from pmlopt.programs.symmetric_leakage.certificate import SymmetricLevelCertificate, least_level_by_orbits
from pmlopt.saved.parts import SHARE, bound_part, gap_part, no_bound, value_part
from pmlopt.saved.verdict import FLOATS, RATIONAL, Part


def symmetric(certificate: SymmetricCertificate) -> Sequence[Part]:
    """Level, value and bound of an expected gain or loss on orbits of pairs."""
    found = float(expected_value(certificate))
    rounding = rounding_of(0, float(np.abs(certificate.values).max()))
    parts = [*_mechanism(certificate), value_part(certificate.value, found, rounding)]
    rho, columns, gains = certificate.multipliers, certificate.columns, certificate.gains
    if rho is None or rho.shape != (len(columns.orbits.letters),):
        return [*parts, no_bound(certificate), gap_part(certificate, rounding)]
    sign = 1.0 if certificate.maximised else -1.0
    proved = columns.raw_bound(gains, rho) + SHARE * columns.rounding_in(gains, rho)
    claim = certificate.constant + sign * proved
    return [
        *parts,
        bound_part(certificate.bound, claim, certificate.maximised),
        gap_part(certificate, rounding),
    ]


def symmetric_level(certificate: SymmetricLevelCertificate) -> Sequence[Part]:
    """Level, floor and bound of a least leakage by orbits."""
    value, level = certificate.value, certificate.level
    sharp = value == certificate.privacy.limits.get("pml") and level <= value + 1e-12 * max(1.0, value)
    reached = certificate.slack >= -certificate.rounding_of_floor
    text = f"the expected utility {certificate.floor:.9g}"
    rho = certificate.multipliers
    proved = 0.0
    if rho is not None and rho.shape == (len(certificate.columns.orbits.letters),):
        proved = least_level_by_orbits(certificate.columns, certificate.gains, certificate.least, rho)
    return [
        *_mechanism(certificate),
        Part("demand", reached, FLOATS, f"{text} is reached" if reached else f"{text} is missed"),
        Part("value", sharp, FLOATS, f"{value:.12g} is {'' if sharp else 'not '}the level that is kept"),
        bound_part(certificate.bound, proved, False),
        gap_part(certificate, 1e-15 * max(1.0, value)),
    ]


def expected_value(certificate: SymmetricCertificate) -> Fraction:
    """The expectation of the values by orbits, exact: they are rationals, as are prior and mechanism."""
    orbits, mechanism = certificate.columns.orbits, certificate.mechanism
    found = Fraction(0)
    for orbit in range(len(orbits.letters)):
        own = np.flatnonzero(orbits.letter == orbit).tolist()
        total = sum(mechanism.masses[k] * Fraction(float(certificate.values[k])) for k in own)
        found += orbits.letters[orbit] * orbits.weights[orbit] * total
    return found / (mechanism.total * orbits.total)


def _mechanism(certificate: SymmetricCertificate) -> list[Part]:
    """That the masses are a mechanism within its limits, in whole numbers."""
    columns, mechanism = certificate.columns, certificate.mechanism
    rows = columns.orbits.consistent and mechanism.rows_are_exact
    holds = columns.hold_exactly(mechanism.masses)
    limits = certificate.privacy.limits
    scope = f", {certificate.privacy.scope}" if certificate.privacy.scope else ""
    text = levels_in_words(columns.levels(mechanism.lifts), limits)
    return [
        Part("mechanism", rows, RATIONAL, "orbits tile the pairs, and rows sum to exactly one"
             if rows else "the orbits are no mechanism"),
        Part("level", holds, RATIONAL, f"{text}{scope}" if holds else f"a limit is broken: {text}"),
    ]  # fmt: skip
