"""The Newton system of the interior-point method, reduced to the coupling rows by Schur complements.

    minimise <C, P>  subject to the coupling rows (multipliers y) and, in each column v of P with scalars u,
    weights'v - costs'r - mean'u = 0 (z),  v - low >= 0,  high - v >= 0,  r >= 0,  r - sign (v - at'u) >= 0,

with `low = lower'u >= 0` and `high = upper'u`. The r of an entry goes first: it leaves a third end `at'u`
that pulls at the entry. With psi the inverse of the sum of what the ends pull, a step in P is elementwise in
the steps of y, z and u; z and u are few scalars for each output; a positive definite system remains
in y, of N rows but for budgets, a total and a border.
"""

from __future__ import annotations

from functools import cached_property
from itertools import combinations, product

import numpy as np

from pmlopt.core.numbers.arrays import BoolArray, FloatArray
from pmlopt.solvers.structured.block_program import BlockLP, SideConstraints
from pmlopt.solvers.structured.factors import (
    factor_cholesky,
    factor_of_squares,
    get_lapack,
    solve_factored,
    substitute_forward,
)
from pmlopt.solvers.structured.iterates import Iterate, NamedArrays

REFINEMENTS = 4
"""How often a step is refined at most."""


class NewtonSystem:
    """The factored Newton system at an iterate.

    Args:
        task: the program.
        at: a point strictly inside.

    Raises:
        ArithmeticError: it is not positive definite in floating-point arithmetic.
    """

    def __init__(self, task: BlockLP, at: Iterate) -> None:
        self.task, self.block, self.hinge, self.at = task, task.block, task.block.hinge, at
        self.based = bool(self.block.lower.any())  # else the lower end is zero
        self.theta: NamedArrays = {
            name: at.duals[name] / slack for name, slack in at.slacks.items()
        }
        self.precision = get_lapack(single=at.low.dtype == np.float32)
        self.rest = np.zeros(task.row_offsets[2], at.low.dtype)
        if "coupled" in self.theta:
            self.rest[task.inequality_mask] = 1 / self.theta["coupled"]
        self._eliminate_entries()
        self._eliminate_columns()
        self._factor_system()
        self._compute_residuals()

    @property
    def order(self) -> int:
        """Return the number of equations that are factored as a dense system."""
        return len(self.factor[1])

    # ------------------------------------------------------------ elimination

    def _eliminate_entries(self) -> None:
        """Eliminate hinge variables and entries: compute their diagonal scaling and couplings."""
        ends = [(self.theta["above"], self.block.lower[:, None])]
        if self.block.has_cap:
            ends.append((self.theta["below"], self.block.upper[:, None]))
        if self.hinge is not None:
            self.loss = _mask_in_place(
                1 / (self.theta["excess"] + self.theta["cut"]), self.task.hinge_mask
            )
            fraction = self.loss * self.theta["cut"]
            self.sway = self.hinge.sign * fraction
            ends.append((fraction * self.theta["excess"], self.hinge.threshold_coefficients))
        total = ends[0][0]
        for weight, _ in ends[1:]:
            total = total + weight
        self.psi = _mask_in_place(1 / total, self.task.allowed)
        none = np.zeros(0)
        shares = [
            self.psi * weight if i or self.based else none for i, (weight, _) in enumerate(ends)
        ]
        self.pull = []
        for j in range(len(self.block.interior_scalars)):
            parts = [
                (fraction, end[j])
                for fraction, (_, end) in zip(shares, ends, strict=True)
                if fraction.size
            ]
            self.pull.append(_combine_scaled(parts))
        self.stiff = []
        for i, j in combinations(range(len(ends)), 2):
            apart = ends[j][1] - ends[i][1]
            if apart.shape[1] == 1:
                steep = np.einsum("xy,xy->y", shares[j], ends[i][0])
            else:  # a threshold for each letter, and no scalar but that
                steep = np.einsum("xy,xy,x->y", shares[j], ends[i][0], apart[0] ** 2)
                apart = np.ones((1, 1))
            self.stiff.append(np.sqrt(steep) * apart)
        if self.block.has_floor:
            self.stiff.append(np.sqrt(self.theta["low"]) * self.block.lower[:, None])

    def _gather_columns(self) -> tuple[FloatArray, FloatArray]:
        """Compute the coefficients that couple column multipliers and scalars with the coupling rows.

        That is `weighed` (K of C, M) and `pulled` (k of C, M), and `lean` (K, k, M).

        Returns:
            (K, K, M) what z has with itself, and (n, k, M) rows whose squares are what u has.
        """
        task, costs = self.task, self.task.hinge_costs
        weighed = [
            self._weigh_entries(*both) for both in zip(task.column_weights, costs, strict=True)
        ]
        mass = np.array(
            [self._apply_column_rows(part) for part in weighed], self.psi.dtype
        ).reshape(len(costs), len(costs), self.psi.shape[1])
        self.lean = (
            np.array([self._apply_column_rows(part) for part in self.pull]).swapaxes(0, 1)
            - task.column_means[:, :, None]
        )
        if self.hinge is not None:
            mass += np.einsum("ix,jx,xy->ijy", costs, costs, self.loss)
            self.lean += [self.hinge.apply_adjoint(part[:, None] * self.sway) for part in costs]
        if self.block.is_loose:
            mass[np.diag_indices(len(mass))] += 1 / self.theta["spare"]
        rows = [*self.stiff]
        if task.allowed is not None:  # the scalars of outputs that no letter may have stay
            void = ~task.allowed.any(axis=0)
            mass[np.diag_indices(len(mass))] += void
            rows += [unit[:, None] * void for unit in np.eye(len(self.pull), dtype=self.psi.dtype)]
        self.weighed = [self._apply_coupling_rows(part) for part in weighed]
        self.pulled = [
            self._apply_coupling_rows(part, index) for index, part in enumerate(self.pull)
        ]
        return mass, np.array(rows, self.psi.dtype).reshape(-1, len(self.pull), self.psi.shape[1])

    def _eliminate_columns(self) -> None:
        """Eliminate column multipliers z, then scalars u; keep their couplings (C, M)."""
        mass, rows = self._gather_columns()
        self.mass = factor_cholesky(mass)
        self.thrown = substitute_forward(self.mass, self.weighed)
        bent = substitute_forward(self.mass, list(self.lean))
        self.spread = self.pulled
        for back, thrown in zip(bent, self.thrown, strict=True):
            self.spread = [
                part - fraction * thrown for part, fraction in zip(self.spread, back, strict=True)
            ]
        self.root = factor_of_squares(np.array([*rows, *bent]))

    def _weigh_entries(self, weights: FloatArray, costs: FloatArray) -> FloatArray:
        """Compute (N, M) scaled entry weights of a column row, corrected for hinges."""
        if self.hinge is None:
            return weights[:, None] * self.psi
        return (weights[:, None] - costs[:, None] * self.sway) * self.psi

    def _apply_column_rows(self, part: FloatArray) -> FloatArray:
        """Compute the (K, M) change of the column rows under a change of entries."""
        out = self.task.column_weights @ part
        if self.hinge is None:
            return out
        return np.asarray(out - self.task.hinge_costs @ (self.sway * part))

    def _apply_coupling_rows(self, part: FloatArray, scalar: int | None = None) -> FloatArray:
        """Compute the (C, M) change of the coupling rows under a change of entries and scalars."""
        task = self.task
        if task.row_offsets[2] == len(part):
            return part
        parts = [part]
        if self.hinge is not None and task.budget is not None:
            parts.append(
                -self.sway
                * (part if scalar is None else part - self.hinge.threshold_coefficients[scalar, 0])
            )
        if task.border is not None:
            parts.append(task.border.evaluate_by_output(part))
        if self.block.total is not None:
            parts.append(np.full((1, part.shape[1]), -1.0 if scalar == 0 else 0.0, part.dtype))
        return np.concatenate(parts)

    def _factor_system(self) -> None:
        """Factor the Schur complement of the coupling rows."""
        count = self.task.row_offsets[2]
        total = np.zeros((count, count), self.psi.dtype, order="F")
        for thrown in self.thrown:
            total = self._add_square(total, thrown, -1.0)
        for part in substitute_forward(self.root, self.spread):
            total = self._add_square(total, part, 1.0)
        self._add_entries(total)
        total[np.diag_indices(count)] += self.rest
        self.factor = self._factor_scaled(total)

    def _factor_scaled(self, total: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Factor a diagonally scaled system by Cholesky; return factor and scale."""
        if not len(total):
            return total, total.diagonal()
        diagonal = np.diag_indices(len(total))
        unit = 1 / np.sqrt(total[diagonal])
        total *= unit
        total *= unit[:, None]
        for shift in self.precision.shifts:
            if shift:
                total[diagonal] = 1 + shift
            factor, info = self.precision.factorise(total, lower=1)
            if info == 0 and np.isfinite(factor[-1, -1]):
                return factor, unit
        raise ArithmeticError("the Newton system is not positive definite")

    def _solve_scaled(
        self, factored: tuple[FloatArray, FloatArray], right: FloatArray
    ) -> FloatArray:
        """Solve a scaled, factored system."""
        factor, unit = factored
        if not len(unit):
            return right
        scale = unit if right.ndim == 1 else unit[:, None]
        found, _ = self.precision.solve(factor, right * scale, lower=1)
        return np.asarray(found * scale)

    def _add_square(self, total: FloatArray, part: FloatArray, sign: float) -> FloatArray:
        """Add `sign part part'` to a matrix's lower triangle in place."""
        square = self.precision.syrk(
            sign, part.T, beta=1.0, c=total, trans=1, lower=1, overwrite_c=1
        )
        return np.asarray(square)

    def _add_entries(self, total: FloatArray) -> None:
        """Add the entries' contribution to the Schur complement, in place."""
        first, last, _ = self.task.row_offsets
        alone = self._letter_blocks()
        letters = np.arange(first).reshape(len(alone), -1)
        for i, j in product(range(len(alone)), repeat=2):
            total[letters[i], letters[j]] += alone[i, j]
        if self.task.border is not None:
            total[first:last, :first] += self._side_letter_block(self.task.border)
            total[first:last, first:last] += self.task.border.weighted_gram(self.psi)

    def _letter_blocks(self) -> FloatArray:
        """Compute (a, a, N) diagonal blocks of the Schur complement by letter."""
        own = self.psi.sum(axis=1)
        if self.task.budget is None:
            return np.array([[own]])
        swayed = self.sway * self.psi
        both = -swayed.sum(axis=1)
        return np.array([[own, both], [both, (swayed * self.sway + self.loss).sum(axis=1)]])

    def _side_letter_block(self, border: SideConstraints) -> FloatArray:
        """Compute the (B, C) block of side constraints against letter rows."""
        own = border.evaluate_by_letter(self.psi)
        if self.task.budget is None:
            return own
        return np.hstack([own, -border.evaluate_by_letter(self.sway * self.psi)])

    def _compute_residuals(self) -> None:
        """Compute the residuals of all equations at the iterate."""
        task, block, p, duals = self.task, self.block, self.at, self.at.duals
        sums, budgets, border, total = task.split_coupling_rows(p.rows)
        self.stationary = duals["above"] - task.costs
        self.stationary += self._price_entries(sums, border, p.means)
        self.stationary_u = -task.column_means.T @ p.means
        self.stationary_u[0] -= total
        if self.based:
            self.stationary_u -= np.outer(block.lower, duals["above"].sum(axis=0))
        if block.has_cap:
            self.stationary -= duals["below"]
            self.stationary_u += np.outer(block.upper, duals["below"].sum(axis=0))
        if block.has_floor:
            self.stationary_u += np.outer(block.lower, duals["low"])
        if self.hinge is not None:
            self.stationary -= self.hinge.sign * duals["cut"]
            self.stationary_u += self.hinge.sign * self.hinge.apply_adjoint(duals["cut"])
            self.stationary_r = (
                duals["excess"] + duals["cut"] + self._price_hinges(budgets, p.means)
            )
        matrix, excess = p.masked_parts(task.allowed, task.hinge_mask)
        self.rows = task.right_sides - task.evaluate_coupling_rows(matrix, excess, p.scalars)
        self.means = -task.evaluate_column_rows(matrix, excess, p.scalars)
        if "coupled" in p.slacks:
            self.rows[task.inequality_mask] += (
                task.row_signs[task.inequality_mask] * p.slacks["coupled"]
            )
        if block.is_loose:
            self.means += p.slacks["spare"]

    def _price_entries(self, sums: FloatArray, border: FloatArray, means: FloatArray) -> FloatArray:
        """Compute the (N, M) row multipliers' contribution to the entries' dual equations."""
        out = (
            np.multiply(self.task.column_weights.T, means)
            if len(means) == 1
            else self.task.column_weights.T @ means
        )
        out += sums[:, None]
        if self.task.border is None:
            return out
        return np.asarray(out + self.task.border.apply_adjoint(border))

    def _price_hinges(self, budgets: FloatArray, means: FloatArray) -> FloatArray:
        """Compute the (N, M) row multipliers' contribution to the hinges' dual equations."""
        out = -self.task.hinge_costs.T @ means
        return out if not len(budgets) else out - budgets[:, None]

    @cached_property
    def max_residuals(self) -> tuple[float, float]:
        """Return the largest dual and primal (coupling-row) residual."""
        entries = max(self.stationary.max(), -self.stationary.min())
        return float(entries), float(np.abs(self.rows).max())

    # ------------------------------------------------------------ steps

    def compute_step(self, want: NamedArrays | None = None) -> Iterate:
        """Compute the Newton step for wanted complementarity products.

        Args:
            want: by name, of the shape of the slacks; left out, what makes the products zero.
        """
        task = self.task
        if want is None:
            to = {name: -part for name, part in self.at.duals.items()}
        else:
            to = {name: part / self.at.slacks[name] for name, part in want.items()}
        for name, where in (("above", task.allowed), ("below", task.allowed), ("excess", task.hinge_mask),
                            ("cut", task.hinge_mask)):  # fmt: skip
            if name in to:
                _mask_in_place(to[name], where)
        rows, means = self.rows.copy(), self.means.copy()
        if "coupled" in to:
            rows[task.inequality_mask] += (
                task.row_signs[task.inequality_mask] * to["coupled"] / self.theta["coupled"]
            )
        if "spare" in to:
            means += to["spare"] / self.theta["spare"]
        dv, dr, scalars = self._compute_pushes(to)
        nothing = np.zeros_like(scalars)
        left = rows - task.evaluate_coupling_rows(dv, dr, nothing)
        left_z = means - task.evaluate_column_rows(dv, dr, nothing)
        dy, dz, du = self._solve_eliminated(left, left_z, scalars)
        cv, cr = self._back_substitute(dy, dz, du)
        for _ in range(REFINEMENTS):
            dv += cv
            dr = cr if dr is None or cr is None else dr + cr
            left = rows - task.evaluate_coupling_rows(dv, dr, du) - self.rest * dy
            left_z = means - task.evaluate_column_rows(dv, dr, du)
            if "spare" in to:
                left_z -= dz / self.theta["spare"]
            if (
                max(np.abs(left).max(), np.abs(left_z).max(initial=0.0))
                <= self.precision.residual_atol
            ):
                return self._assemble_step(to, dv, dr, du, dz, dy)
            cy, cz, cu = self._solve_eliminated(left, left_z, nothing)
            cv, cr = self._back_substitute(cy, cz, cu)
            dy, dz, du = dy + cy, dz + cz, du + cu
        dv += cv
        dr = cr if dr is None or cr is None else dr + cr
        return self._assemble_step(to, dv, dr, du, dz, dy)

    def _compute_pushes(self, to: NamedArrays) -> tuple[FloatArray, FloatArray | None, FloatArray]:
        """Compute the right-hand sides of entries, hinges and scalars."""
        block, push = self.block, to["above"] + self.stationary
        scalars = self.stationary_u.copy()
        if self.based:
            scalars -= np.outer(block.lower, to["above"].sum(axis=0))
        if block.has_cap:
            push -= to["below"]
            scalars += np.outer(block.upper, to["below"].sum(axis=0))
        if block.has_floor:
            scalars += np.outer(block.lower, to["low"])
        own = None
        if self.hinge is not None:
            own = to["excess"] + to["cut"] + self.stationary_r
            at_cut = self.hinge.sign * to["cut"] - self.sway * own
            push -= at_cut
            scalars += self.hinge.apply_adjoint(at_cut)
        scalars += [np.einsum("xy,xy->y", part, push) for part in self.pull]
        push *= self.psi
        return push, None if own is None else self.loss * own + self.sway * push, scalars

    def _back_substitute(
        self, dy: FloatArray, dz: FloatArray, du: FloatArray
    ) -> tuple[FloatArray, FloatArray | None]:
        """Compute the steps of entries and hinges by back-substitution."""
        sums, budgets, border, _ = self.task.split_coupling_rows(dy)
        out = self._price_entries(sums, border, dz)
        own = None
        if self.hinge is not None:
            own = self._price_hinges(budgets, dz)
            out += self.sway * own
        out *= self.psi
        for part, u in zip(self.pull, du, strict=True):
            out += part * u
        if self.hinge is None or own is None:
            return out, None
        return out, self.loss * own + self.sway * (out - self.hinge.compute_thresholds(du))

    def _solve_eliminated(
        self, rows: FloatArray, means: FloatArray, scalars: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Solve the reduced system for coupling multipliers, then scalars and column multipliers."""
        lift = solve_factored(self.mass, means)
        right = scalars
        for part, amount in zip(self.lean, lift, strict=True):
            right = right + part * amount
        for part, amount in zip(self.weighed, lift, strict=True):
            rows = rows - part @ amount
        for part, amount in zip(self.spread, solve_factored(self.root, right), strict=True):
            rows = rows - part @ amount
        dy = self._solve_scaled(self.factor, rows)
        du = solve_factored(self.root, right + [dy @ part for part in self.spread])
        if not len(means):
            return dy, means, du
        back = (self.lean * du).sum(axis=1) + [dy @ part for part in self.weighed]
        return dy, lift - solve_factored(self.mass, back), du

    def _assemble_step(
        self,
        to: NamedArrays,
        dv: FloatArray,
        dr: FloatArray | None,
        du: FloatArray,
        dz: FloatArray,
        dy: FloatArray,
    ) -> Iterate:
        """Assemble the full step of slacks and multipliers."""
        task, block = self.task, self.block
        low = block.lower @ du
        slacks: NamedArrays = {"above": dv - low if self.based else dv}
        if block.has_cap:
            slacks["below"] = _mask_in_place(np.subtract(block.upper @ du, dv), task.allowed)
        if self.hinge is not None and dr is not None:
            slacks["excess"] = dr
            slacks["cut"] = _mask_in_place(
                dr - self.hinge.sign * (dv - self.hinge.compute_thresholds(du)), task.hinge_mask
            )
        if block.has_floor:
            slacks["low"] = low
        for name, slack in slacks.items():
            change = self.theta[name] * slack
            to[name] = np.subtract(to[name], change, out=change)
        if "spare" in to:
            slacks["spare"], to["spare"] = (to["spare"] - dz) / self.theta["spare"], dz
        if "coupled" in to:
            change = task.row_signs[task.inequality_mask] * dy[task.inequality_mask]
            slacks["coupled"], to["coupled"] = (
                (to["coupled"] - change) / self.theta["coupled"],
                change,
            )
        return Iterate(slacks, to, low, du, dz, dy)


def _mask_in_place(part: FloatArray, where: BoolArray | None) -> FloatArray:
    """Set entries outside a mask to zero in place."""
    if where is not None:
        part *= where
    return part


def _combine_scaled(parts: list[tuple[FloatArray, FloatArray]]) -> FloatArray:
    """Sum letter-scaled matrices, without a copy for a single one."""
    terms = [(part, factor) for part, factor in parts if factor.any()]
    if not terms:
        return np.zeros_like(parts[0][0])
    (first, numbers), *others = terms
    out = first if (numbers == 1).all() else numbers[:, None] * first
    for part, factor in others:
        out = out + factor[:, None] * part
    return out


class NewtonSystemByOutputs(NewtonSystem):
    """The Newton system with the letters' multipliers eliminated first, for few outputs.

    With y for the multipliers of the rows of the letters, and t for those of the other rows and z,

        D y + T t + U u = rows,    T'y + G t + L u = means,    -U'y - L't + R u = scalars.
    """

    def _eliminate_columns(self) -> None:
        """Eliminate coupling multipliers y; keep the scaled couplings."""
        mass, rows = self._gather_columns()
        task, kind, m = self.task, self.psi.dtype, self.psi.shape[1]
        first, last, count = task.row_offsets
        own = self._letter_blocks()
        own[np.diag_indices(len(own))] += self.rest[:first].reshape(len(own), -1)
        self.own = factor_cholesky(own)
        border = np.zeros((first, count - first), kind)
        if task.border is not None:
            border[:, : last - first] = self._side_letter_block(task.border).T
        self.shared = self._substitute_letters(
            np.hstack([border, *(part[:first] for part in self.weighed)])
        )
        self.pushed = self._substitute_letters(np.hstack([part[:first] for part in self.pulled]))

        t, u = self.shared.shape[1], self.pushed.shape[1]
        both, cross, square = np.zeros((t, t), kind), np.zeros((t, u), kind), np.zeros((u, u), kind)
        alone, outputs = count - first, np.arange(m)
        if task.border is not None:
            both[: last - first, : last - first] = task.border.weighted_gram(self.psi)
        both[np.arange(alone), np.arange(alone)] += self.rest[first:]
        for i, part in enumerate(self.weighed):
            both[alone + i * m + outputs, :alone] = part[first:].T
            both[:alone, alone + i * m + outputs] = part[first:]
            for j in range(len(mass)):
                both[alone + i * m + outputs, alone + j * m + outputs] = mass[i, j]
            for j in range(len(self.pulled)):
                cross[alone + i * m + outputs, j * m + outputs] = self.lean[i, j]
        for j, part in enumerate(self.pulled):
            cross[:alone, j * m + outputs] = part[first:]
            for i in range(len(self.pulled)):
                square[i * m + outputs, j * m + outputs] = np.einsum(
                    "ny,ny->y", rows[:, i], rows[:, j]
                )
        both -= self.shared.T @ self.shared
        cross -= self.shared.T @ self.pushed
        square += self.pushed.T @ self.pushed
        self.both, self.cross, self.square = both, cross, square

    @property
    def order(self) -> int:
        """Return the number of equations that are factored as dense systems."""
        return len(self.of_scalars[1]) + len(self.factor[1])

    def _factor_system(self) -> None:
        """Factor the remaining systems: scalars u, then the total t."""
        self.of_scalars = self._factor_scaled(self.square)
        self.back = self._solve_scaled(self.of_scalars, self.cross.T)
        self.factor = self._factor_scaled(np.asfortranarray(self.both + self.cross @ self.back))

    def _solve_eliminated(
        self, rows: FloatArray, means: FloatArray, scalars: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Solve the reduced system for y, z and u."""
        first = self.task.row_offsets[0]
        own = self._substitute_letters(rows[:first])
        left = np.concatenate([rows[first:], means.ravel()]) - own @ self.shared
        right = scalars.ravel() + own @ self.pushed
        t = self._solve_scaled(self.factor, left - right @ self.back)
        u = self._solve_scaled(self.of_scalars, right) + self.back @ t
        y = self._substitute_letters_back(own - self.shared @ t - self.pushed @ u)
        alone = len(rows) - first
        return (
            np.concatenate([y, t[:alone]]),
            t[alone:].reshape(means.shape),
            u.reshape(scalars.shape),
        )

    def _substitute_letters(self, part: FloatArray) -> FloatArray:
        """Apply the inverse Cholesky factor of the letters' block to rows (a N, ...)."""
        if len(self.own) == 1:
            return np.asarray((part.T / self.own[0, 0]).T)
        by_letter = part.T.reshape(-1, len(self.own), self.own.shape[2])
        found = substitute_forward(self.own, [by_letter[:, i] for i in range(len(self.own))])
        return np.concatenate(found, axis=1).T.reshape(part.shape)

    def _substitute_letters_back(self, part: FloatArray) -> FloatArray:
        """Apply the transposed inverse Cholesky factor of the letters' block."""
        if len(self.own) == 1:
            return np.asarray(part / self.own[0, 0])
        (one, _), (across, two) = self.own
        first, second = part.reshape(2, -1)
        second = second / two
        return np.concatenate([(first - across * second) / one, second])


def build_newton_system(task: BlockLP, at: Iterate) -> NewtonSystem:
    """Build the Newton system with the cheaper elimination order."""
    first, _, count = task.row_offsets
    dense = (
        (len(task.column_means) + len(task.block.interior_scalars)) * task.costs.shape[1]
        + count
        - first
    )
    return NewtonSystemByOutputs(task, at) if dense < first else NewtonSystem(task, at)
