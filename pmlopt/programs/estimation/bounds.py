"""Lower bounds on the estimation error of designs: by duality from listed columns, or by relaxations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pmlopt.core.lazy_imports import cp, optimize
from pmlopt.core.numbers.arrays import FloatArray, bound_sum_rounding
from pmlopt.model.utility.estimation_error import Criterion
from pmlopt.programs.estimation.columns import DesignColumns, EstimationCone
from pmlopt.solvers import cvxpy_interface
from pmlopt.solvers.solver_result import MethodOptions


@dataclass(frozen=True, eq=False)
class BestMoments:
    """The optimal second moments for given letter weights, and the lower bound they prove.

    Attributes:
        value: the bound.
        slopes: (N,) how it changes with the weights.
        form: (N + S, N + S) `-sum_x w[x] F_x`, with F_x the product of the x-th row and the (N + x)-th.
        information: (N, N) J, the moments of the letters.
    """

    value: float
    slopes: FloatArray
    form: FloatArray
    information: FloatArray


class MomentProblem:
    """The least estimation error over second moments V of columns v = (1 + d, s) with `<p, d>` and E d zero.

    All that is kept of a column is `(rows_x v) (rows_{N+x} v) >= 0`: each letter is between its two ends. For
    weights w >= 0 of these the error is at least `min_V error(J) - sum_x w[x] <F_x, V>`, which is in closed
    form: in a basis d = Q y, and after the best scalars, the form is `c + y' M y`, and with A of the workload
    the covariance of y is best at `M^(-1/2) (M^(1/2) A M^(1/2))^(1/2) M^(-1/2)`, for "D" at `M^-1`.

    Args:
        cone: the columns, with the lower ends in the first N rows and the upper ends in the next.
        objective: the prior, and a workload with a little of every frequency where it leaves some out.
    """

    def __init__(self, cone: EstimationCone, objective: EstimationObjective) -> None:
        n = cone.letters
        m = len(cone.mean)
        p = objective.p
        self.n = n
        self.cone = cone
        self.objective = objective
        # an orthonormal basis of the vectors that sum to zero: (N, N - 1)
        across = np.linalg.qr(np.column_stack([np.ones(n), np.eye(n)[:, 1:]]))[0][:, 1:]
        self.basis = np.zeros((m, m))  # of (1, y, s)
        self.basis[:n, 0] = 1.0
        self.basis[:n, 1:n] = across - np.outer(np.ones(n), p @ across)  # Q, with across' Q = I
        self.basis[n:, n:] = np.eye(m - n)
        self.ends = cone.rows[:n] @ self.basis, cone.rows[n : 2 * n] @ self.basis
        square = objective.workload @ across
        self.square = square.T @ square
        _, volume = np.linalg.slogdet(np.column_stack([p, across]))
        self.volume = 2 * float(volume)

    def solve_at(self, weights: FloatArray) -> BestMoments | None:
        """Solve for the optimal second moments at given letter weights; None where they prove no bound."""
        n = self.n
        lower, upper = self.ends
        form = -(lower.T * weights) @ upper
        form = (form + form.T) / 2
        scalars = form[n:, n:]
        # the infimum over the scalars is -inf unless their block is positive definite
        if len(scalars) and np.linalg.eigvalsh(scalars)[0] <= 0:
            return None
        moved = np.linalg.solve(scalars, form[n:, :n]) if len(scalars) else np.zeros((0, n))
        # Schur's complement: the form after its best scalars
        left = form[:n, :n] - form[:n, n:] @ moved
        sizes, axes = np.linalg.eigh((left[1:, 1:] + left[1:, 1:].T) / 2)
        # a matrix counts as positive definite where no eigenvalue is below 1e-13 of the largest
        if not sizes[0] > 1e-13 * sizes[-1]:
            return None
        within = np.eye(n)
        if self.objective.criterion == "D":
            within[1:, 1:] = (axes / sizes) @ axes.T
            value = float(np.log(sizes).sum()) + n - 1 + self.volume
        else:
            root = (axes * np.sqrt(sizes)) @ axes.T
            back = (axes / np.sqrt(sizes)) @ axes.T
            # the square root of M^(1/2) A M^(1/2), symmetric by construction
            squares, turned = np.linalg.eigh(root @ self.square @ root)
            # tiny negative eigenvalues are rounding
            halves = np.sqrt(np.maximum(squares, 0.0))
            within[1:, 1:] = back @ (turned * halves) @ turned.T @ back
            value = 2 * float(halves.sum())
        moments = np.block(
            [[within, -within @ moved.T], [-moved @ within, moved @ within @ moved.T]]
        )
        return BestMoments(
            value + float(left[0, 0]),
            -np.einsum("xi,ij,xj->x", lower, moments, upper),
            -(self.cone.rows[:n].T * weights) @ self.cone.rows[n : 2 * n],
            (self.basis @ moments @ self.basis.T)[:n, :n],
        )

    def maximize_bound(self) -> tuple[FloatArray, BestMoments] | None:
        """Maximise the lower bound over the letter weights, and return the optimal moments."""

        def evaluate_logs(logs: FloatArray) -> tuple[float, FloatArray]:
            # weights as exponentials: positive without constraints, over many orders of magnitude
            found = self.solve_at(np.exp(np.clip(logs, -300, 300)))
            if found is None:
                # a value worse than all others turns the line search back
                return worst, np.zeros(self.n)
            # the chain rule for the logarithms: d/dlog w = w d/dw
            return -found.value, -found.slopes * np.exp(logs)

        start = np.log(self.objective.p)
        worst = 1e300
        # first the common scale, on which the bound depends most
        scaled = optimize.minimize_scalar(
            lambda by: evaluate_logs(start + by)[0], bounds=(-30, 30), method="bounded"
        )
        size = scaled.x
        first = self.solve_at(np.exp(start + size))
        if first is None:
            return None
        worst = abs(first.value) * 10 + 1e3
        ending = optimize.minimize(
            evaluate_logs, start + size, jac=True, method="L-BFGS-B", options={"ftol": 1e-11}
        )
        weights = np.exp(np.clip(ending.x, -300, 300))
        found = self.solve_at(weights)
        return None if found is None else (weights, found)

    def build_proof(self, objective: EstimationObjective) -> ErrorBoundProof | None:
        """Build the dual multipliers that bound the error of another objective's workload, or None.

        S V = 0 at the best moments V, so S V mean = 0, and V mean is the mean column.
        """
        with np.errstate(all="ignore"):  # where nothing comes of it, nothing is proved
            best = self.maximize_bound()
            if best is None:
                return None
            weights, found = best
            n = self.n
            cone = self.cone
            z = self.objective.compute_sensitivities(found.information)
            # only the symmetric part counts in a quadratic form
            form = (found.form + found.form.T) / 2
            mean = np.ones(len(cone.mean))
            if len(mean) > n:
                mean[n:] = -np.linalg.solve(form[n:, n:], form[n:, :n] @ np.ones(n))
            # complementary slackness S V = 0 fixes pi up to what <m, v> = 1 leaves
            missing = -form @ mean
            missing[:n] += z @ (z.T @ mean[:n])
            u = missing - cone.mean * float(mean @ missing) / 2
            products = np.zeros(cone.form_count)
            one, other = cone.product_pairs
            products[: len(one)][(other == one + n) & (one < n)] = weights
            # Z is shrunk so that rounding leaves S positive semidefinite
            proving = (1 - 1e-8) * objective.compute_sensitivities(found.information)
            return ErrorBoundProof(proving, 2 * u[:n] / objective.p, (products,))


@dataclass(frozen=True, eq=False)
class ErrorBoundProof:
    """The dual multipliers of a lower bound on the error of every design; any values prove a bound.

    Attributes:
        sensitivities: (N, L) Z; for "D" (N, N).
        multipliers: (N,) rho of the rows over the prior.
        products: for each cone (count,) the weights of its quadratic forms, at least 0; negative ones count
            as 0. None where all extreme columns are listed.
    """

    sensitivities: FloatArray
    multipliers: FloatArray
    products: tuple[FloatArray, ...] = ()

    def scaled_by(self, unit: float) -> ErrorBoundProof:
        """Rescale the multipliers to a workload multiplied by `unit`."""
        products = tuple(unit**2 * one for one in self.products)
        return ErrorBoundProof(unit * self.sensitivities, unit**2 * self.multipliers, products)


@dataclass(frozen=True, eq=False)
class EstimationObjective:
    """The objective `tr(W J^-1 W') - |W p|^2` (A-optimality) or `-log det J` (D-optimality).

    Attributes:
        p: (N,) the prior.
        workload: (L, N) W.
        criterion: "A" or "D".
    """

    p: FloatArray
    workload: FloatArray
    criterion: Criterion

    def compute_sensitivities(self, information: FloatArray) -> FloatArray:
        """Compute the (N, L) optimal dual matrix Z: `J^-1 W'`, or for "D" a root of J^-1."""
        sizes, axes = np.linalg.eigh(information)
        # a singular J would divide by zero; any Z bounds the error, so that the cut is safe
        sizes = np.maximum(sizes, np.finfo(float).tiny * 1e20)
        if self.criterion == "D":
            return np.asarray(axes / np.sqrt(sizes))
        return np.asarray(axes @ ((axes.T @ self.workload.T) / sizes[:, None]))

    def compute_bound(self, columns: DesignColumns, proof: ErrorBoundProof) -> float:
        """Compute the lower bound on the error from a requirement's columns, or from their cones."""
        if columns.is_complete:
            bound = self.bound_from_columns(columns.exact, proof)
        else:
            bound = self.bound_from_cones(columns.cones, proof)
        return max(bound, self.trivial_bound)

    @property
    def trivial_bound(self) -> float:
        """Return the bound that needs no proof: 0 for "A", -inf for "D"."""
        return -math.inf if self.criterion == "D" else 0.0

    def bound_from_columns(self, columns: FloatArray, proof: ErrorBoundProof) -> float:
        """Compute a lower bound on the error of every design from columns, for any Z and rho.

        With `J = sum_y q[y] lam_y lam_y'` and `sum_y q[y] lam_y = 1`, completing the square gives for every Z
        in R^(N x L) that `tr(W J^-1 W') >= 2 tr(W Z) - tr(Z' J Z)`, and for "D"
        `-log det J >= log det(Z Z') + N - tr(Z' J Z)`. Weights sum to one, so that for every rho

            tr(Z' J Z) <= <p, rho> + max_lam (|Z' lam|^2 - <p rho, lam>),

        the maximum over the extreme columns, since it is convex. Z = J^-1 W' (a root of J^-1 for "D") and the
        multipliers of the rows over p reach the optimum. What rounding may have added is taken off.

        Args:
            columns: (N, K) all extreme columns of mean one.
            proof: Z and rho.

        Returns:
            The bound, `|W p|^2` taken off for "A"; -inf where the numbers prove nothing.

        Source: [pukelsheim2006optimal, Chapter 7] (the equivalence theorem, here with constraints on the
        mean).
        """
        z = proof.sensitivities
        pi = self.p * proof.multipliers
        # (L, K): |Z' lam|^2 of all columns at once
        turned = z.T @ columns
        excess = float(((turned**2).sum(axis=0) - pi @ columns).max())
        # where columns hardly differ from one, the terms of Z' lam are far above their sum
        sizes = 2 * float((np.abs(turned) * (np.abs(z).T @ np.abs(columns))).sum(axis=0).max())
        sizes += float(np.abs(pi).sum() * np.abs(columns).max())
        return self._combine_bound(z, float(pi.sum()) + excess, sizes, z.size + len(pi))

    def bound_from_cones(self, cones: Sequence[EstimationCone], proof: ErrorBoundProof) -> float:
        """Compute a lower bound on the error of every design from the columns of some cones, for any numbers.

        It is that of `bound_from_columns`, with an upper bound on what `|Z' lam|^2 - <p rho, lam>` can be for
        an extreme column lam. With v = (lam, s) of a cone, its mean m and quadratic forms F_i,
        `v' F_i v >= 0`, and pi = (p rho, 0), since <m, v> is one,

            |Z' lam|^2 - <pi, v> = -v' S v - sum_i w[i] v' F_i v,
            S = (pi m' + m pi') / 2 - Z Z' - sum_i w[i] F_i,

        for weights w >= 0, and where the least eigenvalue of S is -eta this is at most `eta |v|^2`.

        Source: [boyd2004convex, Section 5.2] (the bound by duality), for quadratic constraints.
        """
        z = proof.sensitivities
        pi = self.p * proof.multipliers
        n = len(self.p)
        missing = 0.0
        # an extreme column is of one of the cones: the worst of them counts
        for cone, given in zip(cones, proof.products, strict=True):
            # negative weights would turn the inequality v' F v >= 0 round
            weights = np.maximum(given, 0.0)
            padded = np.append(pi, np.zeros(len(cone.mean) - n))
            form = (
                np.outer(padded, cone.mean) + np.outer(cone.mean, padded)
            ) / 2 - cone.combine_forms(weights)
            # numbers from a file, or of a singular information, may overflow: they prove nothing then
            with np.errstate(over="ignore"):
                form[:n, :n] -= z @ z.T
            terms = np.abs(np.outer(padded, cone.mean)) + cone.combine_forms(weights, absolute=True)
            if not (np.isfinite(form).all() and np.isfinite(terms).all()):
                return -np.inf
            size = float(terms.sum()) + float((np.abs(z) @ np.abs(z).T).sum())
            # Weyl: rounding moves an eigenvalue by no more than the norm of the errors
            least = float(np.linalg.eigvalsh(form)[0]) - bound_sum_rounding(n, size)
            # v' S v >= least |v|^2, and |v|^2 is bounded on the cone
            missing = max(missing, -least * cone.size)
        return self._combine_bound(z, float(pi.sum()) + missing, float(np.abs(pi).sum()), z.size)

    def _combine_bound(self, z: FloatArray, spent: float, sizes: float, terms: int) -> float:
        """Compute the dual bound `2 tr(W Z) - |W p|^2` or `log det(Z Z') + N`, less rounding."""
        if self.criterion == "D":
            sign, volume = np.linalg.slogdet(z)  # of Z Z' the condition would be squared
            gained = 2 * float(volume) + len(z) if sign else -np.inf
            sizes += 2 * abs(float(volume)) + len(z)
        else:
            clear = float(((self.workload @ self.p) ** 2).sum())
            gained = 2 * float((self.workload.T * z).sum()) - clear
            sizes += 2 * float(np.abs(self.workload.T * z).sum()) + clear
        bound = gained - spent - bound_sum_rounding(terms, sizes)
        return bound if np.isfinite(bound) else -np.inf


def solve_relaxation(
    objective: EstimationObjective,
    cones: Sequence[EstimationCone],
    information: FloatArray,
    options: MethodOptions,
) -> ErrorBoundProof | None:
    """Solve semidefinite programs for the best multipliers of `bound_from_cones`; None when none end in time.

    For "D" one has the logarithm of a determinant in it, which may cost a solver its digits, and another
    keeps the Z of J up to a factor; the better bound counts.

    Args:
        objective: prior, workload and criterion.
        cones: of the columns.
        information: (N, N) J of a good design: in a basis in which it is the identity, as far as it is
            regular, and with quadratic forms of size one, the numbers of the program are near one.
        options: the seconds, and the tolerance.
    """
    # cvxpy takes about 5e-7 s to compile an entry of a quadratic form
    compiling = 5e-7 * sum(cone.form_count * len(cone.mean) ** 2 for cone in cones)
    sizes, axes = np.linalg.eigh(information)
    # eigenvalues below 1e-8 of the largest do not set the unit of a direction
    root = np.asarray(axes * np.sqrt(np.maximum(sizes, 1e-8 * sizes[-1])))
    n = len(objective.p)
    unit = 1.0
    tried = []
    if objective.criterion == "A":
        turned = np.linalg.solve(root, objective.workload.T).T  # W in the new basis, lam = root mu
        # a workload of size one keeps the solver's numbers near one
        unit = float(np.linalg.norm(turned))
        # linear in Z, with Z Z' in S by Schur's complement: a semidefinite program
        z = cp.Variable(turned.T.shape)
        tried.append((z, 2 * cp.sum(cp.multiply(turned.T / unit, z))))
    else:
        square = cp.Variable((n, n), symmetric=True)
        tried += [(cp.Constant(np.eye(n)), None), (square, cp.log_det(square))]
    found = []
    for z, gained in tried:
        if options.deadline.expired_for(-compiling):  # cvxpy cannot be stopped
            break
        one = _solve_semidefinite(objective.p, cones, root, z, gained, unit, options)
        found += [] if one is None else [one]
    return max(found, key=lambda proof: objective.bound_from_cones(cones, proof), default=None)


def _solve_semidefinite(
    p: FloatArray,
    cones: Sequence[EstimationCone],
    root: FloatArray,
    z: cp.Expression,
    gained: cp.Expression | None,
    unit: float,
    options: MethodOptions,
) -> ErrorBoundProof | None:
    """Solve one semidefinite program of the relaxation, scaled by a basis `root` and a unit.

    Without what it has `gained` Z is kept up to a factor.
    """
    n, whole = len(p), z.is_symmetric()  # a workload's Z is not declared so
    pi = cp.Variable((n, 1))
    cost = cp.sum(cp.multiply(np.linalg.solve(root, np.ones(n)), pi[:, 0]))
    forms = [_build_cone_form(cone, root, pi) for cone in cones]
    constraints = [_build_schur_matrix(form, z, whole) >> 0 for _, _, form in forms]
    problem = cp.Problem(cp.Maximize((0.0 if gained is None else gained) - cost), constraints)
    outcome = cvxpy_interface.solve_problem(problem, "CLARABEL", options, {})
    if outcome.state != "point" or z.value is None or pi.value is None:
        return None
    # solvers return floats, with which any proof is valid once the bound is recomputed
    found = np.asarray(z.value)
    if whole:
        sizes, axes = np.linalg.eigh((found + found.T) / 2)
        found = axes * np.sqrt(np.maximum(sizes, 0.0))
    if gained is None:
        # the best factor of Z Z' is N over the cost
        unit = math.sqrt(n / max(float(cost.value), 1e-300))
    return ErrorBoundProof(
        np.linalg.solve(root.T, found) * unit,
        np.linalg.solve(root.T, pi.value).ravel() * unit**2 / p,
        tuple(
            np.maximum(np.asarray(weights.value), 0.0) * unit**2 / norm
            for weights, norm, _ in forms
        ),
    )


def _build_cone_form(
    cone: EstimationCone, root: FloatArray, pi: cp.Variable
) -> tuple[cp.Variable, FloatArray, cp.Expression]:
    """Build the quadratic forms of a cone's relaxation, with their scaling factors."""
    n = cone.letters
    m = len(cone.mean)
    basis = np.eye(m)
    basis[:n, :n] = root
    mean = basis.T @ cone.mean
    forms = basis.T @ cone.list_forms() @ basis
    # rows of different units would give weights of very different sizes
    sizes = np.linalg.norm(forms, axis=(1, 2))
    weights = cp.Variable(len(forms), nonneg=True)
    form = cp.reshape(
        (forms / sizes[:, None, None]).reshape(-1, m * m).T @ weights, (m, m), order="C"
    )
    padded = cp.vstack([pi, np.zeros((m - n, 1))]) if m > n else pi
    return weights, sizes, (padded @ mean[None, :] + mean[:, None] @ padded.T) / 2 - form


def _build_schur_matrix(form: cp.Expression, z: cp.Expression, whole: bool) -> cp.Expression:
    """Build the matrix that must be positive semidefinite, or that whose Schur complement it is."""
    into = np.eye(form.shape[0], z.shape[0])  # scalars of the cone have no part in Z
    if whole:
        return (form + form.T) / 2 - into @ z @ into.T
    # [[I, Z'], [Z, S]] >= 0 is S - Z Z' >= 0: linear in Z
    block = cp.bmat([[np.eye(z.shape[1]), (into @ z).T], [into @ z, form]])
    return (block + block.T) / 2
