"""Designs of best utility whose post-processed leakage exceeds epsilon with probability delta at most."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pmlopt.core.lazy_imports import cp
from pmlopt.core.numbers.arrays import (
    FloatArray,
    Labels,
    check_nonnegative,
    check_probability,
)
from pmlopt.data.prior import Prior, PriorLike, as_prior
from pmlopt.errors import PrivacyError
from pmlopt.model.privacy import PML
from pmlopt.model.utility import LinearUtility
from pmlopt.model.utility.linear import check_linear_utility
from pmlopt.programs.envelope_design.certificate import EnvelopeDesignCertificate
from pmlopt.programs.envelope_design.margin_programs import MarginRange
from pmlopt.programs.linear.columns import DenseColumns
from pmlopt.programs.linear.program import ExpectationProgram, check_not_huge
from pmlopt.programs.program import CvxpyModel, Outputs, build_problem, resolve_outputs


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class EnvelopeDesign(ExpectationProgram[EnvelopeDesignCertificate]):
    """The design of the best expected gain or loss whose envelope at delta is at most epsilon.

    The condition is not convex. For fixed margins s it is: `problem` is the linear program over
    mechanisms P with `P[x,y] <= t q[y] - s[x] (q[y] - b[y])`, `b >= 0` and `sum b <= delta`, where
    `t = e^epsilon` and q is the law of the output. The parameter `margins` is s, zeros at first, which is
    the design within PML(epsilon). `solve` searches for the best margins.

    Attributes:
        prior, utility, outputs: what it was declared from.
        table: (N, M) the gain or loss on the labels, in the person's units.
        epsilon: in nats.
        delta: the probability.
        margins: (N, 1) the parameter of `problem`.
        margin_range: what the margins can be.

    Examples:
        >>> from pmlopt import ExpectedLoss
        >>> program = envelope_design([0.8, 0.2], 0.5, 0.05, ExpectedLoss([[0, 1], [1, 0]]))
        >>> round(float(program.problem.solve(solver="HIGHS")), 6)  # PML(0.5): always the likelier letter
        0.2
        >>> program.margins.value = np.array([[0.0], [program.margin_range.max_margins[1]]])
        >>> round(float(program.problem.solve(solver="HIGHS")), 6)
        0.191536
    """

    prior: Prior
    utility: LinearUtility
    outputs: Labels
    table: FloatArray
    epsilon: float
    delta: float
    margins: cp.Parameter
    margin_range: MarginRange

    @cached_property
    def columns(self) -> DenseColumns:  # type: ignore[override]
        """Return the column system under PML(epsilon), which is sufficient for the envelope condition."""
        return DenseColumns(self.prior, PML(self.epsilon))

    @property
    def row_and_column_labels(self) -> tuple[Labels | None, Labels | None]:
        """Return the labels of the mechanism's rows (letters) and columns (outputs)."""
        return self.prior.labels, self.outputs

    @property
    def mechanism(self) -> cp.Variable:
        """Return the (N, M) cvxpy variable of the mechanism matrix."""
        return self.variables["mechanism"]

    def __repr__(self) -> str:
        return f"<EnvelopeDesign within {self.epsilon:g} nats but for {self.delta:g}>"


def envelope_design(
    prior: PriorLike, epsilon: float, delta: float, utility: LinearUtility, outputs: Outputs = None
) -> EnvelopeDesign:
    """Build a design whose post-processed leakage exceeds epsilon with probability delta at most.

    The best expected gain or loss over the mechanisms with `eps_c(delta) <= epsilon` (see `envelope`).
    PML(epsilon) implies that, and so does `ApproximatePML(0, envelope_slack(N, epsilon, delta))`; the
    value is never worse than theirs. The condition is not convex, which is why it is no requirement of
    `design`: it is convex once each letter has a margin by which the likelihood ratios of ordinary
    outputs stay below e^epsilon. `solve` searches the margins, by linear programs from several starts and
    by branch and bound. With few letters that mostly proves the optimum; where it does not, the status is
    `unproved`, and the bound is valid.

    Args:
        prior: N letters.
        epsilon: in nats, at least 0.
        delta: the probability, in (0, 1).
        utility: `ExpectedGain` or `ExpectedLoss`.
        outputs: the M outputs, as in `design`; several with the same gains are no better than one.

    Raises:
        PriorError, PrivacyError, UtilityError, ProgramError: an argument cannot be meant.

    Source: [saeidian2026envelopes, Theorem 2] for the envelope; the design is pmlopt's.

    Examples:
        >>> from pmlopt import ExpectedLoss, solve
        >>> result = solve(envelope_design([0.8, 0.2], 0.5, 0.05, ExpectedLoss([[0, 1], [1, 0]])))
        >>> result.status.value, round(result.value, 6), result.certificate.verify()
        ('optimal', 0.191536, True)
        >>> result.mechanism.matrix.round(6) + 0.0  # the rarer letter gives itself away, a few times
        array([[1.      , 0.      ],
               [0.957682, 0.042318]])
    """
    known = as_prior(prior)
    level = check_nonnegative(epsilon, "epsilon", PrivacyError)
    failure = check_probability(delta)
    check_linear_utility(utility)
    labels = resolve_outputs(known.labels, utility.fixed_outputs, outputs)
    margins = cp.Parameter(
        (known.size, 1), nonneg=True, value=np.zeros((known.size, 1)), name="margins"
    )
    program = EnvelopeDesign(
        build_model=lambda: _build_model(program),
        prior=known,
        utility=utility,
        outputs=labels,
        table=check_not_huge(utility.evaluate_table(known.labels, labels)),
        epsilon=level,
        delta=failure,
        margins=margins,
        margin_range=MarginRange.from_prior(known, level, failure),
    )
    return program


def _build_model(program: EnvelopeDesign) -> CvxpyModel:
    """Build the cvxpy model of an envelope design with fixed margins."""
    span = program.margin_range
    margins = program.margins
    mechanism = cp.Variable(program.table.shape, nonneg=True, name="mechanism")
    law = cp.Variable((1, len(program.outputs)), nonneg=True, name="output_law")
    bad = cp.Variable(law.shape, nonneg=True, name="bad")
    variables = {"mechanism": mechanism, "output_law": law, "bad": bad}
    constraints = {
        "rows": cp.sum(mechanism, axis=1) == 1,
        "output_law": span.pmf[None, :] @ mechanism == law,
        "ratios": mechanism
        <= np.full(margins.shape, span.ratio) @ law - margins @ law + margins @ bad,
        "failure": cp.sum(bad) <= span.delta,
    }
    sense = cp.Maximize if program.maximised else cp.Minimize
    gain = cp.sum(cp.multiply(span.pmf[:, None] * program.centered_gains, mechanism))
    return CvxpyModel(
        build_problem(sense(program.to_utility(gain)), constraints), variables, constraints
    )
