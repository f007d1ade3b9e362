"""Audits of a program that may stop at any time: whether a claim on its leakage is refuted or confirmed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from pmlopt.core.arrays import (
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

    Source: [howard2021time, Section 3.2], [robbins1970statistical]; docs/theory/programs.md.

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
        self._edges, self._outcomes, self._next_look = edges, outcomes, 1
        self._places: dict[Any, int] = {}
        for label in check_labels_of_size(outcomes or (), None, "the outcomes", InputError):
            find_place(self._places, label)
        self._table = np.zeros((max(8, len(self._places)), self.prior.size if self.prior else 1))

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
        leaky, unsafe, _ = self._test_outcomes()
        ends = [
            find_sequence_ends(k, self.samples, (1 - self.confidence) / 2) for k in (leaky, unsafe)
        ]
        return ends[0][0], ends[1][1]

    def to_dict(self) -> dict[str, Any]:
        """Return the claim and the state of the audit as plain data."""
        lower, upper = self.tail_bounds
        return {
            "epsilon": self.epsilon, "delta": self.delta, "confidence": self.confidence,
            "samples": self.samples, "outcomes": len(self._places), "verdict": self.verdict,
            "tail": {"lower": lower, "upper": upper},
        }  # fmt: skip

    def _count_samples(self, samples: Any) -> None:
        """Count samples, and look whether the claim is decided where it is time to."""
        rows, outputs = read_samples(samples, self.prior, self._edges)
        if self._outcomes is not None:
            indices_of(outputs, self._outcomes, "the outputs of the samples", MechanismError)
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
        if self.verdict != "undecided" or not self.samples:
            return
        leaky, unsafe, all_safe = self._test_outcomes()
        n, error = self.samples, (1 - self.confidence) / 2
        if self.delta == 0:
            seen = int((self._table.sum(axis=1) > 0).sum())
            # of K outcomes of a deterministic program one has a probability of 1/K at most
            many = self.prior is None and math.log(seen) > self.epsilon * (1 + 1e-12)
            refuted, confirmed = leaky > 0 or many, self._outcomes is not None and all_safe
        else:
            refuted = bool(is_surely_below(n - leaky, n, 1 - self.delta, error))
            confirmed = bool(is_surely_below(unsafe, n, self.delta, error))
        self.verdict = "refuted" if refuted else "confirmed" if confirmed else "undecided"

    def _test_outcomes(self) -> tuple[int, int, bool]:
        """Test all outcomes.

        Returns:
            How many samples have outcomes that surely leak more than epsilon, how many have others than those
            that surely do not, and whether there are no others.
        """
        table = self._table[: len(self._places)]
        numbers = table.sum(axis=1)
        error = (1 - self.confidence) / (1 if self.delta == 0 else 2)
        if self.prior is None:
            limit = math.exp(-self.epsilon)
            # at most 1 / limit outcomes are as frequent as that
            leaky = is_surely_below(numbers, self.samples, limit, error * limit)
            safe = is_surely_above(numbers, self.samples, limit, error)
        else:
            order = np.arange(1.0, len(table) + 1)[:, None]
            parts: Any = len(table) if self._outcomes is not None else order * (order + 1)
            shares = np.exp(self.epsilon) * self.prior.pmf
            possible, draws = shares < 1, numbers[:, None]
            shares = np.where(possible, shares, 0.5)
            leaky = (is_surely_above(table, draws, shares, error / parts) & possible).any(axis=1)
            safe = (is_surely_below(table, draws, shares, error / parts) | ~possible).all(axis=1)
        return int(numbers[leaky].sum()), int(numbers[~safe].sum()), bool(safe.all())
