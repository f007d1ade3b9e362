"""Newton's system of a design with many letters and few outputs: the letters are eliminated, not the outputs.

The rows of a letter (its sum, and its budget) meet those of another letter only through the scalars u and the
multipliers z of the outputs. So they go first, letter by letter. What is left is dense in u, in z, and in the
multipliers of the few rows that belong to no letter (a border, a total): O(N M^2) instead of O(N^2 M).
"""

from __future__ import annotations

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.solvers.structured.block_program import Task
from pmlopt.solvers.structured.newton import Newton, cholesky, forward
from pmlopt.solvers.structured.points import Point


class NewtonByOutputs(Newton):
    """The same system and steps as `Newton`.

    With y for the multipliers of the rows of the letters, and t for those of the other rows and z,

        D y + T t + U u = rows,    T'y + G t + L u = means,    -U'y - L't + R u = scalars.
    """

    def _eliminate_columns(self) -> None:
        """Eliminate y; `shared` and `pushed` are T and U times the inverse factor of D."""
        mass, rows = self._gather_columns()
        task, kind, m = self.task, self.psi.dtype, self.psi.shape[1]
        first, last, count = task.places
        own = self._of_letters()
        own[np.diag_indices(len(own))] += self.rest[:first].reshape(len(own), -1)
        self.own = cholesky(own)
        beside = np.zeros((first, count - first), kind)
        if task.border is not None:
            beside[:, : last - first] = self._border_of_letters(task.border).T
        self.shared = self._forward(np.hstack([beside, *(part[:first] for part in self.weighed)]))
        self.pushed = self._forward(np.hstack([part[:first] for part in self.pulled]))

        t, u = self.shared.shape[1], self.pushed.shape[1]
        both, cross, square = np.zeros((t, t), kind), np.zeros((t, u), kind), np.zeros((u, u), kind)
        alone, outputs = count - first, np.arange(m)
        if task.border is not None:
            both[: last - first, : last - first] = task.border.square(self.psi)
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
                square[i * m + outputs, j * m + outputs] = np.einsum("ny,ny->y", rows[:, i], rows[:, j])
        both -= self.shared.T @ self.shared
        cross -= self.shared.T @ self.pushed
        square += self.pushed.T @ self.pushed
        self.both, self.cross, self.square = both, cross, square

    def _factor(self) -> None:
        """Eliminate u, then t."""
        self.of_scalars = self._factored(self.square)
        self.back = self._after(self.of_scalars, self.cross.T)
        self.factor = self._factored(np.asfortranarray(self.both + self.cross @ self.back))

    def _solve(
        self, rows: FloatArray, means: FloatArray, scalars: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """y, z and u of the eliminated system."""
        first = self.task.places[0]
        own = self._forward(rows[:first])
        left = np.concatenate([rows[first:], means.ravel()]) - own @ self.shared
        right = scalars.ravel() + own @ self.pushed
        t = self._after(self.factor, left - right @ self.back)
        u = self._after(self.of_scalars, right) + self.back @ t
        y = self._backward(own - self.shared @ t - self.pushed @ u)
        alone = len(rows) - first
        return np.concatenate([y, t[:alone]]), t[alone:].reshape(means.shape), u.reshape(scalars.shape)

    def _forward(self, part: FloatArray) -> FloatArray:
        """The inverse factor of D times rows (a N, ...) of the letters."""
        if len(self.own) == 1:
            return np.asarray((part.T / self.own[0, 0]).T)
        by_letter = part.T.reshape(-1, len(self.own), self.own.shape[2])
        found = forward(self.own, [by_letter[:, i] for i in range(len(self.own))])
        return np.concatenate(found, axis=1).T.reshape(part.shape)

    def _backward(self, part: FloatArray) -> FloatArray:
        """The transposed inverse factor of D times one number for each row of the letters."""
        if len(self.own) == 1:
            return np.asarray(part / self.own[0, 0])
        (one, _), (across, two) = self.own
        first, second = part.reshape(2, -1)
        second = second / two
        return np.concatenate([(first - across * second) / one, second])


def newton_at(task: Task, at: Point) -> Newton:
    """The system at a point, in the order in which there is less left to factor."""
    first, _, count = task.places
    dense = (len(task.mean) + len(task.block.inside)) * task.costs.shape[1] + count - first
    return NewtonByOutputs(task, at) if dense < first else Newton(task, at)
