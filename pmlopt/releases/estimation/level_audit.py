"""Audits of a program that may stop at any time: whether a claim on its leakage is refuted or confirmed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from pmlopt.core.arrays import (
    BoolArray,
    FloatArray,
    Label,
    check_in_interval,
    check_labels_of_size,
    check_nonnegative,
    indices_of,
)
from pmlopt.data.prior import PriorLike, as_prior
from pmlopt.errors import InputError, MechanismError, PrivacyError
from pmlopt.releases.estimation.intervals import check_confidence
from pmlopt.releases.estimation.outcome_limits import (
    find_sequence_ends,
    is_surely_above,
    is_surely_below,
)
from pmlopt.releases.estimation.sampled_tails import find_place, read_samples

Verdict: TypeAlias = Literal["refuted", "confirmed", "undecided"]


class LevelAudit:
    """An audit of the claim `P(l(Y) > epsilon) <= delta` that takes samples as they come.

    Whenever it is looked at, and by whatever rule the sampling stops, a verdict is wrong with probability
    `1 - confidence` at most. With delta 0 the claim is on the leakage level: it can be refuted, and confirmed
    only where all outcomes are listed, since no sample bounds the leakage of an outcome that nobody saw.

    Every outcome has a test of its own, a beta-binomial mixture martingale of how often it was seen, or of
    its secrets, whose errors add up to half of `1 - confidence` over all outcomes (by their probabilities; of
    pairs by `1 / (i (i + 1))` in the order in which they appear). The other half is that of a confidence
    sequence for the mass of the outcomes whose test has, or has not, been passed.

    Args:
        epsilon: the level of the claim, in nats.
        delta: the probability with which it may be exceeded, in [0, 1).
        prior: where samples are pairs of a letter and an output: the N letters, as in `leakage_from_samples`;
            without it samples are outputs of a deterministic program.
        confidence: in (0, 1).
        outcomes: all that may occur, where they are known.
        edges: for outputs that are numbers, the edges of cells, fixed before (`cut_outputs`).

    Raises:
        PrivacyError: the level or delta is out of range.
        InputError: the confidence is outside (0, 1), or outcomes and edges are both given.

    Source: [howard2021time, Section 3.2], [robbins1970statistical]; docs/programs.md.

    Examples:
        >>> audit = LevelAudit(epsilon=1.0, delta=0.05)
        >>> audit.add_samples(["fast", "slow"] * 20), audit.add_samples(["fast", "slow"] * 100)
        ('undecided', 'confirmed')
        >>> LevelAudit(epsilon=0.5).add_samples(["fast", "slow"])  # two outcomes: one leaks log 2 or more
        'refuted'
    """

    def __init__(
        self,
        epsilon: float,
        delta: float = 0.0,
        prior: PriorLike | None = None,
        confidence: float = 0.95,
        outcomes: Sequence[Label] | None = None,
        edges: Sequence[float] | None = None,
    ) -> None:
        self.epsilon = check_nonnegative(epsilon, "epsilon", PrivacyError)
        self.delta = check_in_interval(delta, "[0, 1)", "delta", PrivacyError)
        self.confidence = check_confidence(confidence)
        self.prior = None if prior is None else as_prior(prior)
        self.samples = 0
        self.verdict: Verdict = "undecided"
        if outcomes is not None and edges is not None:
            raise InputError("the cells between edges are the outcomes: leave the outcomes out")
        self._edges = edges
        self._listed = (
            None
            if outcomes is None
            else check_labels_of_size(outcomes, None, "the outcomes", InputError)
        )
        self._places: dict[Any, int] = {}
        for label in self._listed or ():
            find_place(self._places, label)
        width = 1 if self.prior is None else self.prior.size
        self._table = np.zeros((max(8, len(self._places)), width))
        self._next_look = 1

    def add_samples(self, samples: Any) -> Verdict:
        """Add samples, and return the verdict after them.

        Args:
            samples: outputs, or pairs of a letter and an output, in any form that `leakage_from_samples`
                takes.

        Raises:
            MechanismError: a letter is not of the prior, or an output is not among the listed outcomes.
        """
        self._count_samples(samples)
        self._look()
        return self.verdict

    def run(self, samples: Iterable[Any]) -> Verdict:
        """Take samples one by one until the claim is decided or there are no more; return the verdict.

        Examples:
            >>> import itertools
            >>> audit = LevelAudit(epsilon=1.0, delta=0.05)
            >>> audit.run(itertools.cycle(["fast", "slow"])), audit.samples < 300
            ('confirmed', True)
        """
        for sample in samples:
            self._count_samples([sample])
            if self.verdict != "undecided":
                return self.verdict
        self._look()
        return self.verdict

    @property
    def tail_bounds(self) -> tuple[float, float]:
        """Return bounds on `P(l(Y) > epsilon)`, each right at every time with the confidence."""
        if not self.samples:
            return 0.0, 1.0
        leaky, unsafe = self._count_leaky_and_unsafe()
        lower, _ = find_sequence_ends(leaky, self.samples, self._error / 2)
        _, upper = find_sequence_ends(unsafe, self.samples, self._error / 2)
        return lower, upper

    def to_dict(self) -> dict[str, Any]:
        """Return the claim and the state of the audit as plain data."""
        lower, upper = self.tail_bounds
        return {
            "epsilon": self.epsilon, "delta": self.delta, "confidence": self.confidence,
            "samples": self.samples, "outcomes": len(self._places), "verdict": self.verdict,
            "tail": {"lower": lower, "upper": upper},
        }  # fmt: skip

    @property
    def _error(self) -> float:
        """Return the probability with which a verdict may be wrong."""
        return 1 - self.confidence

    def _count_samples(self, samples: Any) -> None:
        """Count samples, and look whether the claim is decided where it is time to."""
        letters, outputs = read_samples(samples, self.prior is not None, self._edges)
        rows = [0] * len(outputs)
        if self.prior is not None:
            rows = indices_of(
                letters, self.prior.labels, "the letters of the samples", MechanismError
            )
        if self._listed is not None:
            indices_of(outputs, self._listed, "the outputs of the samples", MechanismError)
        for row, outcome in zip(rows, outputs, strict=True):
            place = find_place(self._places, outcome)
            if place == len(self._table):
                self._table = np.vstack([self._table, np.zeros_like(self._table)])
            self._table[place, row] += 1
            self.samples += 1
            if self.samples >= self._next_look:
                self._look()

    def _look(self) -> None:
        """Decide, if it can be decided now: every look is at a stopping time."""
        # with every sample at first, and then whenever there are 3 in 100 more
        self._next_look = self.samples + max(1, self.samples // 32)
        if self.verdict == "undecided" and self.samples:
            self.verdict = self._decide()

    def _decide(self) -> Verdict:
        """Return the verdict on the samples so far."""
        leaky, unsafe = self._count_leaky_and_unsafe()
        n, error = self.samples, self._error / 2
        if self.delta == 0:
            table = self._table[: len(self._places)]
            seen = int((table.sum(axis=1) > 0).sum())
            # of K outcomes that occur, one has a probability of 1/K at most
            many = self.prior is None and math.log(seen) > self.epsilon * (1 + 1e-12)
            safe = self._listed is not None and bool(self._find_safe(table).all())
            return "refuted" if leaky or many else "confirmed" if safe else "undecided"
        if is_surely_below(n - leaky, n, 1 - self.delta, error):
            return "refuted"
        return "confirmed" if is_surely_below(unsafe, n, self.delta, error) else "undecided"

    def _count_leaky_and_unsafe(self) -> tuple[int, int]:
        """Return how many samples have outcomes that surely leak more than epsilon, or perhaps do."""
        table = self._table[: len(self._places)]
        numbers = table.sum(axis=1)
        leaky, safe = self._find_leaky(table), self._find_safe(table)
        return int(numbers[leaky & (numbers > 0)].sum()), int(numbers[~safe].sum())

    def _spend_error(self) -> FloatArray:
        """Return the (K, 1) errors of the tests of outcomes for pairs."""
        size = len(self._places)
        whole = self._error if self.delta == 0 else self._error / 2
        order = np.arange(1.0, size + 1)
        spent = np.full(size, 1 / size) if self._listed is not None else 1 / (order * (order + 1))
        return np.asarray(whole * spent)[:, None]

    def _find_safe(self, table: FloatArray) -> BoolArray:
        """Find the outcomes that surely leak epsilon at most."""
        if self.prior is None:
            limit = min(1.0, math.exp(-self.epsilon) * (1 + 1e-12))
            whole = self._error if self.delta == 0 else self._error / 2
            return is_surely_above(table[:, 0], self.samples, limit, whole)
        shares = np.exp(self.epsilon) * self.prior.pmf[None] * (1 - 1e-12)
        draws, below = table.sum(axis=1, keepdims=True), shares < 1
        tested = is_surely_below(table, draws, np.where(below, shares, 0.5), self._spend_error())
        return np.asarray((tested | ~below).all(axis=1))

    def _find_leaky(self, table: FloatArray) -> BoolArray:
        """Find the outcomes that surely leak more than epsilon."""
        if self.prior is None:
            limit = math.exp(-self.epsilon) * (1 - 1e-12)
            whole = self._error if self.delta == 0 else self._error / 2
            # at most 1 / limit outcomes are as frequent as that
            return is_surely_below(table[:, 0], self.samples, limit, whole * limit)
        shares = np.exp(self.epsilon) * self.prior.pmf[None] * (1 + 1e-12)
        draws, below = table.sum(axis=1, keepdims=True), shares < 1
        tested = is_surely_above(table, draws, np.where(below, shares, 0.5), self._spend_error())
        return np.asarray((tested & below).any(axis=1))
