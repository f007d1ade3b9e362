"""The convex program of the joint laws that prove a bound about a secret, over any sets of priors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pmlopt.core.lazy_imports import cp
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.model.uncertainty.dual_measures import CompiledPrograms, GainProgram
from pmlopt.model.uncertainty.joint_laws import JointLaws


class BestJointMeasures(CompiledPrograms[JointLaws, "_JointProgram"]):
    """The weights and joint laws that prove little about the gain of columns under a bound about a secret.

    With measures A_s for the law of the secret of mass w_s, L_t for the laws of the data given t, and H_s
    given s at its largest mean, it is `min tau` under `p (g - tau) + sum_t L_t <= sum_s H_s`, where L_t has
    the mass `sum_(s != t) A_s(t)`, and H_s the mass `e^-epsilon w_s - A_s(s)`.

    Args:
        source: the set of joint laws.
    """

    def _build_program(self, shape: tuple[int, ...]) -> _JointProgram:
        return _JointProgram.build(self._source, shape)

    def find_measures(
        self, p: FloatArray, gains: FloatArray, exp_neg_epsilon: float
    ) -> tuple[FloatArray, list[FloatArray]] | None:
        """Find (S, M) weights, and the measures of the laws given each value, of these at their largest
        means, and of the secret; None where the program fails.

        Args:
            p: (N,) the prior of the design.
            gains: (N, M) the columns g.
            exp_neg_epsilon: in (0, 1].
        """

        def find(some: FloatArray) -> list[FloatArray] | None:
            return self._solve(p, some, exp_neg_epsilon)

        found = self._find_by_columns(find, gains)
        return None if found is None else (found[0], found[1:])

    def _solve(
        self, p: FloatArray, gains: FloatArray, exp_neg_epsilon: float
    ) -> list[FloatArray] | None:
        """Solve the program, for the weights and the measures."""
        program = self.get_program(gains.shape)
        unit = program.solve(p, gains, exp_neg_epsilon)
        if unit is None:
            return None
        found = [np.asarray(one.value) for one in (program.weights, *program.measures)]
        if not all(np.isfinite(value).all() for value in found):
            return None
        return [unit * np.maximum(value, 0.0) for value in found]


@dataclass(frozen=True)
class _JointProgram(GainProgram):
    """The program of the best measures, with its variables."""

    weights: cp.Variable
    measures: list[cp.Variable]

    @classmethod
    def build(cls, laws: JointLaws, shape: tuple[int, ...]) -> _JointProgram:
        """Build the program for gains of a shape."""
        costs = cp.Parameter(shape)
        prior = cp.Parameter((shape[0], 1))
        factor = cp.Parameter(nonneg=True)
        s = laws.law.size
        low, high = ([cp.Variable(shape, nonneg=True) for _ in range(s)] for _ in range(2))
        secret = [cp.Variable((s, shape[1]), nonneg=True) for _ in range(s)]
        # how much of each law there is, in the order of the measures
        weights, below, above = (cp.Variable((s, shape[1]), nonneg=True) for _ in range(3))
        tau = cp.Variable((1, shape[1]), nonneg=True)
        rules = [costs - prior @ tau + sum(low) - sum(high) <= 0]
        for value, one in enumerate(laws.conditionals):
            others = [own[value] for other, own in enumerate(secret) if other != value]
            rules += [
                below[value] == sum(others),
                above[value] == factor * weights[value] - secret[value][value],
                *one.constrain_measures(low[value], below[[value]]),
                *one.constrain_measures(high[value], above[[value]]),
                *laws.law.constrain_measures(secret[value], weights[[value]]),
            ]
        problem = cp.Problem(cp.Minimize(cp.sum(tau)), rules)
        return cls(problem, costs, prior, factor, weights, [*low, *high, *secret])
