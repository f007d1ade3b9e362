"""First mechanisms of linear designs, found in milliseconds, for solves that no solver ends in time."""

from __future__ import annotations

import time

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.model.closed_forms import constant
from pmlopt.model.privacy.ratios import Ratios
from pmlopt.programs.linear.certificate import LinearCertificate, SymmetricCertificate
from pmlopt.programs.linear.certifying import certify_linear, certify_symmetric
from pmlopt.programs.linear.program import LinearDesign, SymmetricDesign
from pmlopt.programs.program import C, Found, MethodError

BLOCK_SIZE = 1_000_000
"""Differences of two rows that are looked at in one step."""


def find_first_mechanism(program: LinearDesign) -> Found[LinearCertificate]:
    """Certify the best constant, or a better exponential mechanism where bounds are on pairs of letters.

    Raises:
        MethodError: constraints were added, and no mechanism by formula is known to meet them.
    """
    if program.added:
        raise MethodError("no mechanism by formula meets constraints of your own")
    begin = time.perf_counter()
    candidates = [constant(program.prior, program.centred).matrix]
    ratios = program.privacy.for_prior(program.prior).ratios(program.prior.pmf)
    if ratios is not None and not len(ratios.rows) and len(ratios.exponents):
        candidates.append(exponential_matrix(program.centred, ratios))
    best = max(candidates, key=lambda matrix: program.columns.expectation(program.centred, matrix))
    if program.privacy.by_pairs and ratios is not None and np.ndim(ratios.exponents):
        # the bound of no privacy at all: a better one takes a linear program
        weights = np.zeros((len(ratios.exponents), best.shape[1]))
        certificate = certify_linear(program, best, program.centred.max(axis=1), {"weights": weights})
    else:
        certificate = certify_linear(program, best, None)
    return _found(certificate, time.perf_counter() - begin)


def exponential_matrix(gains: FloatArray, ratios: Ratios) -> FloatArray:
    """Return `P[x,y] ~ exp(s g[x,y])` with the largest s at which every bound on a pair of letters is kept.

    A ratio of two rows is `exp(s (g[x,y] - g[z,y]))` over the ratio of their sums, which lies between the
    least and the largest of these: its logarithm is at most s times their spread over the outputs.
    """
    scale, step = np.inf, max(1, BLOCK_SIZE // gains.shape[1])
    for first in range(0, len(ratios.above), step):
        part = slice(first, first + step)
        spread = np.ptp(gains[ratios.above[part]] - gains[ratios.below[part]], axis=1)
        exponents = np.broadcast_to(ratios.exponents, ratios.above.shape)[part]
        bound = spread > 0
        scale = min(scale, float((exponents[bound] / spread[bound]).min(initial=np.inf)))
    shifted = gains - gains.max(axis=1)[:, None]
    # where rows differ by a number each, all may take the outputs that gain most
    found = (shifted == 0).astype(float) if np.isinf(scale) else np.exp(scale * shifted)
    return np.asarray(found / found.sum(axis=1)[:, None])


def find_first_by_orbits(program: SymmetricDesign) -> Found[SymmetricCertificate]:
    """Certify the constant that always takes an output of the best orbit, each with the same probability."""
    begin, columns = time.perf_counter(), program.columns
    law = np.zeros(len(columns.orbits.outputs))
    law[int(columns.means(program.centred).argmax())] = 1.0
    lifts = columns.of_outputs(law, program.centred.shape)
    return _found(certify_symmetric(program, lifts, None), time.perf_counter() - begin)


def _found(certificate: C, seconds: float) -> Found[C]:
    by_orbits = isinstance(certificate, SymmetricCertificate)
    return Found(
        certificate=certificate,
        finished=False,
        message="a mechanism by formula",
        detail="",
        certify_seconds=seconds,
        arrays={} if by_orbits else {"matrix": certificate.mechanism.matrix},
    )
