"""A bound on designs for estimation under LDP that needs no list of columns: a semidefinite relaxation."""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from pmlopt.arrays import FloatArray, rounding_of
from pmlopt.backends import through_cvxpy
from pmlopt.backends.outcome import Options


@dataclass(frozen=True, eq=False)
class Relaxation:
    """The numbers that prove a bound without a list of columns.

    Attributes:
        sensitivities: (N, L) Z.
        multipliers: (N,) rho of the rows over the prior.
        ratios: (N,) d >= 0 of the bounds on the ratios of a column; negative entries count as 0.
    """

    sensitivities: FloatArray
    multipliers: FloatArray
    ratios: FloatArray


def relaxed_bound(p: FloatArray, wanted: FloatArray, ratio: float, proof: Relaxation) -> float:
    """A lower bound on `tr(W J^-1 W') - |W p|^2` within log(ratio)-LDP, for any numbers.

    It is `2 tr(W Z) - |W p|^2 - <p, rho>` less what `|Z' lam|^2 - <p rho, lam>` can be for a column, as in
    `information_bound`. A column of mean one and least entry m has `(lam[x] - m) (lam[x] - ratio m) <= 0` at
    each letter, so that with pi = p rho

        |Z' lam|^2 <= <pi, lam> - (lam, m) S (lam, m)',
        S = (pi p' + p pi') / 2 - Z Z' + (the squares above, with the weights d),

    and where the least eigenvalue of S is -eta, the last term is at most `eta (N ratio^2 + 1)`.

    Source: [boyd2004convex, Section 5.2] (the bound by duality), for quadratic constraints.
    """
    z, pi, d = proof.sensitivities, p * proof.multipliers, np.maximum(proof.ratios, 0.0)
    up, n = ratio * (1 + 1e-12), len(p)
    form = np.zeros((n + 1, n + 1))
    form[:n, :n] = (np.outer(pi, p) + np.outer(p, pi)) / 2 - z @ z.T + np.diag(d)
    form[:n, n] = form[n, :n] = -(1 + up) / 2 * d
    form[n, n] = up * d.sum()
    if not np.isfinite(form).all():
        return -np.inf
    size = float(np.abs(form).sum() + np.abs(z).sum() ** 2)
    missing = max(0.0, -float(np.linalg.eigvalsh(form)[0])) + rounding_of(n, size)
    clear = float(((wanted @ p) ** 2).sum())
    gained = 2 * float((wanted.T * z).sum()) - float(pi.sum()) - clear
    sizes = 2 * float(np.abs(wanted.T * z).sum()) + float(np.abs(pi).sum()) + clear
    return gained - missing * (n * up**2 + 1) - rounding_of(z.size, sizes)


def relaxed(p: FloatArray, wanted: FloatArray, ratio: float, options: Options) -> Relaxation | None:
    """The best numbers for `relaxed_bound`, by one semidefinite program; None where it was not solved."""
    n, unit = len(p), float(np.linalg.norm(wanted))
    z, pi = cp.Variable(wanted.T.shape), cp.Variable((n, 1))
    d = cp.Variable((n, 1), nonneg=True)
    squares = (pi @ p[None, :] + p[:, None] @ pi.T) / 2 + cp.diag(cp.vec(d, order="C"))
    cross = -(1 + ratio) / 2 * d
    form = cp.bmat([[squares, cross], [cross.T, ratio * cp.sum(d, keepdims=True)]])
    lifted = cp.vstack([z, np.zeros((1, len(wanted)))])
    block = cp.bmat([[np.eye(len(wanted)), lifted.T], [lifted, form]])
    gained = 2 * cp.sum(cp.multiply(wanted.T / unit, z)) - cp.sum(pi)
    problem = cp.Problem(cp.Maximize(gained), [(block + block.T) / 2 >> 0])
    outcome = through_cvxpy.run(problem, "CLARABEL", options, {})
    if outcome.state != "point" or z.value is None or pi.value is None or d.value is None:
        return None
    return Relaxation(
        np.asarray(z.value) * unit,
        np.asarray(pi.value).ravel() * unit**2 / p,
        np.asarray(d.value).ravel() * unit**2,
    )
