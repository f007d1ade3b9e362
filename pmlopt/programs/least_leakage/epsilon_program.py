"""The least epsilon of any design: the smallest level of a requirement at which its utility is reached."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pmlopt.core.lazy_imports import cp
from pmlopt.core.numbers.arrays import FloatArray, Labels
from pmlopt.data.prior import Prior
from pmlopt.data.symmetry.prior import SymmetricPrior
from pmlopt.model.privacy import Requirement
from pmlopt.model.utility import LinearUtility, Utility
from pmlopt.programs.design_program import Design
from pmlopt.programs.designs import design
from pmlopt.programs.least_leakage.epsilon_certificate import LeastEpsilonCertificate
from pmlopt.programs.least_leakage.families import replace_level
from pmlopt.programs.linear.columns import OrbitColumns
from pmlopt.programs.program import Outputs, Program, resolve_outputs


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class LeastEpsilon(Program[LeastEpsilonCertificate]):
    """The least level of a requirement at which the best design reaches a target.

    `solve` searches for it from both sides: at `value` a mechanism reaches the target, at `bound` the proved
    bound of the design lies short of it. `at(epsilon)` is the design at one level.

    With an expected gain or loss on listed letters, under PML (also over a set of priors or about a secret),
    LDP, LIP, maximal leakage, ratio bounds such as metric privacy, and bounds of finite order, `problem` has
    `epsilon` as a parameter: its optimum is by how much the best mechanism of that level stays short of the
    target, 0 iff it is reached. It is a disciplined parametrized program. Else `problem` is that of the
    design at the least level, which is found first.

    Attributes:
        prior: N letters.
        privacy: a requirement of the family; its level is not looked at.
        utility: what must reach the target.
        reach: the target: what a utility that is maximised is at least, and another one at most.
        outputs: as in `design`.
        epsilon: the level, a parameter of `problem`.

    Examples:
        >>> from pmlopt import LDP, ExpectedGain, least_leakage
        >>> program = least_leakage([0.5, 0.5], LDP, ExpectedGain(np.eye(2)), 0.75)
        >>> program.epsilon.value = np.log(3)
        >>> program.problem.is_dpp(), round(float(program.problem.solve(solver="HIGHS")), 9) + 0.0
        (True, 0.0)
        >>> program.epsilon.value = np.log(2)
        >>> round(float(program.problem.solve(solver="HIGHS")), 9)  # 3/4 - 2/3
        0.083333333
    """

    prior: Prior | SymmetricPrior
    privacy: Requirement
    utility: Utility
    reach: float
    outputs: Outputs
    epsilon: cp.Parameter
    maximised = False
    """The level is minimised."""

    @property
    def row_and_column_labels(self) -> tuple[Labels | None, Labels | None]:
        """Return the prior's letters, and the outputs where the utility fixes them."""
        if isinstance(self.prior, SymmetricPrior):
            return None, None
        return self.prior.labels, self.output_labels

    @cached_property
    def output_labels(self) -> Labels | None:
        """Return the output labels; None where the solution determines their number."""
        if isinstance(self.utility, LinearUtility):
            return resolve_outputs(self.prior.labels, self.utility.fixed_outputs, self.outputs)
        return None

    def at(self, epsilon: float) -> Design[Any]:
        """Build the design at a given level.

        Args:
            epsilon: in nats.
        """
        found: Design[Any] = design(  # type: ignore[assignment]
            self.prior, replace_level(self.privacy, epsilon), self.utility, self.outputs
        )
        return found

    @property
    def is_concave(self) -> bool:
        """Return whether the optimal utility is concave in e^epsilon.

        That is so for an expected value under a bound on largest entries by means of the columns.
        """
        return isinstance(self.utility, LinearUtility) and self.privacy.name == "pml"

    @cached_property
    def best_table(self) -> FloatArray | None:
        """Return the (N, M) table of gains (negated losses); None for other utilities."""
        if not isinstance(self.utility, LinearUtility) or isinstance(self.prior, SymmetricPrior):
            return None
        assert self.output_labels is not None
        return self.utility.evaluate_gains(self.prior.labels, self.output_labels)

    @cached_property
    def best_matrix(self) -> FloatArray | None:
        """Return the mechanism of the best utility without any privacy requirement."""
        if isinstance(self.prior, SymmetricPrior) and isinstance(self.utility, LinearUtility):
            return None
        if self.best_table is not None:
            best = self.best_table == self.best_table.max(axis=1, keepdims=True)
            return np.asarray(best / best.sum(axis=1, keepdims=True))
        return np.eye(self.prior.size)

    @cached_property
    def constant_matrix(self) -> FloatArray | None:
        """Return the best constant mechanism."""
        if self.best_matrix is None:
            return None
        if self.best_table is not None:
            best = int((self.prior.pmf @ self.best_table).argmax())
            return np.tile(np.eye(self.best_table.shape[1])[best], (self.prior.size, 1))
        return np.full(self.best_matrix.shape, 1 / self.prior.size)

    @cached_property
    def best_value(self) -> float:
        """Return the best utility of any mechanism without a privacy requirement."""
        if self.best_matrix is not None:
            return self.compute_utility(self.best_matrix)
        assert isinstance(self.prior, SymmetricPrior)
        assert isinstance(self.utility, LinearUtility)
        space = self.prior.make_pairs(self.utility.shape)
        table = self.utility.evaluate_on_orbits(space)
        columns = OrbitColumns.from_space(space, self.privacy)
        sign = 1.0 if self.utility.maximised else -1.0
        return sign * float(columns.masses @ columns.max_by_letter(sign * table))

    def compute_utility(self, matrix: FloatArray) -> float:
        """Compute the utility of a mechanism matrix."""
        if self.best_table is not None:
            sign = 1.0 if self.utility.maximised else -1.0
            return sign * float(
                math.fsum((self.prior.pmf[:, None] * self.best_table * matrix).ravel())
            )
        return self.utility.value(self.prior, matrix)

    @property
    def unit(self) -> float:
        """Return the largest magnitude of target and utility, to which the target's rounding is relative."""
        sizes = [abs(self.best_value), abs(self.reach)]
        if self.best_table is not None:
            sizes.append(float(self.prior.pmf @ np.abs(self.best_table).max(axis=1)))
        return max(size for size in sizes if math.isfinite(size))

    def __repr__(self) -> str:
        return f"<LeastEpsilon of {self.privacy.name} for a utility of {self.reach:.9g}>"
