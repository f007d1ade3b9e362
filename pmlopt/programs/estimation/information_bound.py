"""What no design for estimation betters: the bound by duality, from any multipliers."""

from __future__ import annotations

import numpy as np

from pmlopt.arrays import FloatArray, rounding_of
from pmlopt.utility.estimation_error import Criterion


def information_bound(
    columns: FloatArray,
    p: FloatArray,
    wanted: FloatArray,
    criterion: Criterion,
    sensitivities: FloatArray,
    multipliers: FloatArray,
) -> float:
    """A lower bound on the error of every design from columns, for any Z and rho.

    With `J = sum_y q[y] lam_y lam_y'` and `sum_y q[y] lam_y = 1`, completing the square gives for every Z in
    R^(N x L) that `tr(W J^-1 W') >= 2 tr(W Z) - tr(Z' J Z)`, and for "D" `-log det J >= log det(Z Z') + N -
    tr(Z' J Z)`. Weights sum to one, so that for every rho

        tr(Z' J Z) <= <p, rho> + max_lam (|Z' lam|^2 - <p rho, lam>),

    the maximum over the extreme columns, since it is convex. Z = J^-1 W' (a root of J^-1 for "D") and the
    multipliers of the rows over p reach the optimum. What rounding may have added is taken off.

    Args:
        columns: (N, K) all extreme columns of mean one.
        p: (N,) the prior.
        wanted: (L, N) the workload W.
        criterion: "A" or "D".
        sensitivities: (N, L) Z; for "D" (N, N).
        multipliers: (N,) rho.

    Returns:
        The bound, `|W p|^2` taken off for "A"; -inf where the numbers prove nothing.

    Source: [pukelsheim2006optimal, Chapter 7] (the equivalence theorem, here with constraints on the mean).
    """
    z, pi = sensitivities, p * multipliers
    turned = z.T @ columns
    heights = (turned**2).sum(axis=0)
    excess = float((heights - pi @ columns).max())
    spent = float(pi.sum()) + excess
    gained, sizes = gained_by(p, wanted, criterion, z)
    # where columns hardly differ from one, the terms of Z' lam are far above their sum
    sizes += 2 * float((np.abs(turned) * (np.abs(z).T @ np.abs(columns))).sum(axis=0).max()) + float(
        np.abs(pi).sum() * np.abs(columns).max()
    )
    bound = gained - spent - rounding_of(z.size + len(p), sizes)
    return bound if np.isfinite(bound) else -np.inf


def gained_by(
    p: FloatArray, wanted: FloatArray, criterion: Criterion, sensitivities: FloatArray
) -> tuple[float, float]:
    """What Z brings to the bound, `2 tr(W Z) - |W p|^2` or `log det(Z Z') + N`, and the size of its terms."""
    z = sensitivities
    if criterion == "D":
        sign, volume = np.linalg.slogdet(z)  # of Z Z' the condition would be squared
        gained = 2 * float(volume) + len(p) if sign else -np.inf
        return gained, 2 * abs(float(volume)) + len(p)
    clear = float(((wanted @ p) ** 2).sum())
    return 2 * float((wanted.T * z).sum()) - clear, 2 * float(np.abs(wanted.T * z).sum()) + clear


def sensitivities_of(information: FloatArray, wanted: FloatArray, criterion: Criterion) -> FloatArray:
    """(N, L) the Z that is best at an information matrix: `J^-1 W'`, or for "D" a root of J^-1."""
    sizes, axes = np.linalg.eigh(information)
    sizes = np.maximum(sizes, np.finfo(float).tiny * 1e20)
    if criterion == "D":
        return np.asarray(axes / np.sqrt(sizes))
    return np.asarray(axes @ ((axes.T @ wanted.T) / sizes[:, None]))
