"""The linear program of the outcomes of a post-processing that leak a level, over the rationals."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from pmlopt.errors import ProgramError
from pmlopt.programs.envelope.certificate import EnvelopeCertificate, ProcessedFailureCertificate
from pmlopt.programs.envelope.masses import RationalMechanism
from pmlopt.programs.exact.rounding import scale_to_integers
from pmlopt.programs.proofs.exact_program import (
    ONE,
    ZERO,
    ExactProgram,
    RationalPowers,
    make_names,
)


def build_post_processing(
    certificate: EnvelopeCertificate | ProcessedFailureCertificate, level: float, *, above: bool
) -> ExactProgram:
    """Build the program of the outcomes of a post-processing that leak a level, with the attack as its point.

    Source: [saeidian2026envelopes, Theorem 1].

    Raises:
        ProgramError: it is over a set of priors.
    """
    if certificate.over is not None:
        raise ProgramError(
            "an envelope over a set of priors is no single linear program: prove it for one prior"
        )
    exact = RationalMechanism.from_floats(certificate.prior, certificate.mechanism.matrix)
    unit = Fraction(1, exact.total)
    columns, law = exact.columns * unit, exact.laws[0] * unit
    program = ExactProgram(RationalPowers(above))
    ratio = program.powers(level)
    letters = make_names(certificate.prior.labels)
    outputs = make_names(certificate.mechanism.outputs)
    shares = _assign_outcomes(certificate.attack.matrix, columns, law, ratio)
    used = np.flatnonzero(law).tolist()
    cells = [
        [program.add_column(f"take[{letter},{outputs[y]}]", own[y]) for y in used]
        for letter, own in zip(letters, shares, strict=True)
    ]
    for place, y in enumerate(used):
        program.add_row(f"taken[{outputs[y]}]", {row[place]: ONE for row in cells}, ONE)
    for letter, row, column in zip(letters, cells, columns, strict=True):
        leaks = {cell: ratio * law[y] - column[y] for cell, y in zip(row, used, strict=True)}
        program.add_row(f"leak[{letter}]", leaks)
    program.objective = {cell: law[y] for row in cells for cell, y in zip(row, used, strict=True)}
    return program


def _assign_outcomes(attack: Any, columns: Any, law: Any, ratio: Fraction) -> Any:
    """Return for each letter the shares of outputs that become outcomes which leak through it."""
    given = scale_to_integers(attack) * ONE
    given = given / given.sum(axis=1)[:, None]
    joint, masses = columns @ given, law @ given
    found = np.full(columns.shape, ZERO, dtype=object)
    for z, best in enumerate(joint.argmax(axis=0).tolist()):
        if masses[z] and joint[best, z] >= ratio * masses[z]:
            found[best] = found[best] + given[:, z]
    return found
