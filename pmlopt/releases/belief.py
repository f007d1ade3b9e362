"""What an adversary believes of a secret that moves, who knows its chain and what was released so far."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from pmlopt.core.arrays import BoolArray, FloatArray
from pmlopt.data.chain import Chain
from pmlopt.data.prior import Prior
from pmlopt.errors import PrivacyError
from pmlopt.model.privacy import PML, RatioBound, Requirement

RESERVE = 1e-12
"""Nats of the level that steps leave free, each less than the one before, so that a constant has room."""

PART = 0.1
"""Of what is left of epsilon beyond the cap, what each release may use: so that the past falls away."""

RARE = 1e-280
"""The probability below which a state is taken for one that cannot be."""

FORGOTTEN = 1e-15
"""How far what is believed of the present may differ by a past value that counts no more."""

FORGOTTEN_AHEAD = 1e-13
"""The same of a state to come by the present one: kernels are multiplied until their rows are that near."""

MOST_AHEAD = 2000
"""Steps within which the chain has to forget where what is asked about is not the state itself."""


def budgets(told: FloatArray, epsilon: float, cap: float, time: int) -> FloatArray:
    """What the release at a time may tell beyond what was told, in nats."""
    rest = epsilon - RESERVE - told
    room = RESERVE / (time * (time + 1))
    return np.asarray(np.maximum(np.maximum(cap - RESERVE - told, PART * rest), room))


@dataclass(frozen=True)
class Asked:
    """What is asked about.

    Attributes:
        chain: the secret.
        width: how many states in a row; 0 for all of them.
        letters: (G, N) which states have each value of a function of the state; the unit matrix for itself.
    """

    chain: Chain
    width: int
    letters: FloatArray

    @cached_property
    def hidden(self) -> bool:
        """Whether a value to come may be told more of than the present one.

        Not where the kernels take states of one value to each value with the same chance: then the values
        are a chain.
        """
        values = self.letters.argmax(axis=0)
        first = np.array([int(np.argmax(values == value)) for value in values])
        moves = self.chain.kernels @ self.letters.T
        return bool(np.abs(moves - moves[:, first]).max() > 0)


@dataclass(frozen=True)
class Values:
    """Values of what is asked about at one time: what they have to do with the present.

    Attributes:
        time: of the state, or of the last one of a window of states.
        prior: (R,) their probabilities before any release.
        joint: (R, N) their probabilities jointly with the present state, after the releases so far.
    """

    time: int
    prior: FloatArray
    joint: FloatArray

    @property
    def lifts(self) -> FloatArray:
        """(R,) posterior over prior."""
        return np.asarray(self.joint.sum(axis=1) / self.prior)

    @property
    def given(self) -> FloatArray:
        """(R, N) the law of the present state given each value."""
        return np.asarray(self.joint / self.joint.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class ExactBelief:
    """The law of the present state and of what is asked about, by Bayes' rule.

    Attributes:
        asked: what is asked about.
        time: of the present state.
        law: (N,) of the present state.
        pasts: the values that count, the last of them those of the present state or window.
        window: (prior, posterior) of the last states, with an axis for each.
        peaks: (N,) the largest lift of a path that ends in each state.
        level: the largest level of what counts no more.
    """

    asked: Asked
    time: int
    law: FloatArray
    pasts: tuple[Values, ...]
    window: tuple[FloatArray, FloatArray]
    peaks: FloatArray
    level: float

    @classmethod
    def begun(cls, asked: Asked) -> ExactBelief:
        """The belief before any release, about what is asked."""
        first = asked.chain.initial
        peaks, window = np.where(first > 0, 1.0, 0.0), (first, first)
        return cls(asked, 1, first, (_present(1, asked, window),), window, peaks, -math.inf)

    @property
    def _possible(self) -> BoolArray:
        return np.asarray(self.law > RARE)

    def requirement(self, epsilon: float, cap: float) -> Requirement:
        """On the states that can be now, for a level of epsilon in the end, and the cap now."""
        possible = self._possible
        law = self.law[possible]
        if not self.asked.width:
            told = np.log(self.peaks[possible])
            return PML(budgets(told, epsilon, cap, self.time).tolist())
        rows, each = [], []
        present, most = self.pasts[-1], np.full(len(self.law), math.inf)
        own = self.asked.width == 1 and len(self.asked.letters) == len(self.law)
        for values in (present, *self.pasts[:-1], *self._ahead):
            given, told = values.given[:, possible], np.log(values.lifts)
            left = budgets(told, epsilon, cap, self.time)
            # other bounds hold whatever is released, now or ever, or as means of those on the present state
            odds = (given / law).max(axis=1)
            binds = odds > np.exp(np.maximum(left, epsilon - RESERVE - told))
            if values is present:
                most[values.joint.argmax(axis=1)] = np.where(binds, np.exp(left), odds)
            elif own:
                binds &= given @ most[possible] > np.exp(left) * (1 - 1e-14)
            rows.append(given[binds])
            each.append(left[binds])
        numerators, exponents = np.vstack(rows), np.concatenate(each)
        if not len(exponents):
            return PML(Prior(law).max_leakage)  # whatever is told is within the level
        needed = _needed(numerators * np.exp(-exponents)[:, None] - law)
        return RatioBound(numerators[needed], np.tile(law, (int(needed.sum()), 1)), exponents[needed])

    @cached_property
    def _ahead(self) -> tuple[Values, ...]:
        """Values to come of which more may be told than of the present one, until the chain has forgotten."""
        found: list[Values] = []
        if not self.asked.hidden:
            return ()
        chain, (before, _) = self.asked.chain, self.window
        moves, possible = np.eye(chain.size), self._possible
        for time in range(self.time, self.time + MOST_AHEAD):
            if chain.steps == time:
                return tuple(found)
            moves = moves @ chain.kernel(time)
            reached = moves[possible]
            if (np.ptp(reached, axis=0) <= FORGOTTEN_AHEAD * reached.max(axis=0)).all():
                return tuple(found)
            values = moves @ self.asked.letters.T
            prior, joint = before @ values, (values * self.law[:, None]).T
            occurs = joint.any(axis=1)
            found.append(Values(time + 1, prior[occurs], joint[occurs]))
        raise PrivacyError(
            f"the chain has not forgotten its state within {MOST_AHEAD} steps, so that what is told of "
            "states to come has no end: give a chain of so many states, or ask about the state"
        )

    def after(self, emits: FloatArray) -> tuple[ExactBelief, float, dict[int, float]]:
        """What is believed after an output, by the (N,) chance of it in each state.

        Returns:
            The belief before the next release; the level of all releases so far; and what they tell of which
            time, of the times that still count.
        """
        ratio = emits / float(self.law @ emits)
        pasts = [replace(values, joint=values.joint * ratio) for values in self.pasts]
        window = (self.window[0], self.window[1] * ratio)  # the last axis is the present state
        peaks = self.peaks * ratio
        if not self.asked.width:
            level = log_of(peaks.max())
            worst = {self.time: level}
        else:
            worst = {values.time: log_of(values.lifts.max()) for values in pasts}
            ahead = [log_of((values.joint @ ratio / values.prior).max()) for values in self._ahead]
            level = max(self.level, *worst.values(), *ahead)
        return replace(self, window=window, peaks=peaks)._moved(pasts), level, worst

    def _moved(self, pasts: Sequence[Values]) -> ExactBelief:
        """The belief before the next release; past the end of the chain there is nothing to believe."""
        chain, width = self.asked.chain, self.asked.width
        if chain.steps == self.time:
            return replace(self, time=self.time + 1, law=np.zeros(chain.size), pasts=())
        kernel = chain.kernel(self.time)
        law = np.asarray((self.window[1].reshape(-1, chain.size)).sum(axis=0) @ kernel)
        law = law / law.sum()
        peaks = np.where(kernel > 0, self.peaks[:, None], 0.0).max(axis=0)
        if not width:
            return replace(self, time=self.time + 1, law=law, window=(law, law), peaks=peaks)
        kept, level = [], self.level
        if self.time < width:
            pasts = ()  # the next window is longer, and tells all of this one
        for values in pasts:
            left = values.joint.any(axis=1)
            moved = replace(values, prior=values.prior[left], joint=values.joint[left] @ kernel)
            if (np.abs(moved.given - law) <= FORGOTTEN * law).all():
                level = max(level, log_of(moved.lifts.max()))
            else:
                kept.append(moved)
        longer = [table[..., None] * kernel for table in self.window]
        prior, posterior = (table.sum(axis=0) if table.ndim > width else table for table in longer)
        window = (prior, posterior)
        kept.append(_present(self.time + 1, self.asked, window))
        return ExactBelief(self.asked, self.time + 1, law, tuple(kept), window, peaks, level)


def _needed(rows: FloatArray) -> BoolArray:
    """(K,) which of the bounds `<rows_k, v> <= 0` on columns v >= 0 do not follow from another one.

    Row j follows from row i where `rows_j <= s rows_i` for some s >= 0. Of rows that follow from each other
    one is asked.
    """
    kept = np.ones(len(rows), dtype=bool)
    above, below = np.where(rows > 0, rows, np.nan), np.where(rows < 0, rows, np.nan)
    for j, row in enumerate(rows):
        # s is at least the quotients by positive entries of row i, and at most those by negative ones
        least = np.fmax.reduce(row / above, axis=1, initial=0.0)
        most = np.fmin.reduce(row / below, axis=1, initial=np.inf)
        follows = kept & (least <= most) & ~((rows == 0) & (row > 0)).any(axis=1)
        follows[j] = False
        kept[j] = not follows.any()
    return kept


def _present(time: int, asked: Asked, window: tuple[FloatArray, FloatArray]) -> Values:
    """The values of the window of states that ends now, or of the function of the present state."""
    n = asked.chain.size
    if asked.width == 1:
        prior, joint = asked.letters @ window[0], asked.letters * window[1]
    else:
        prior = window[0].reshape(-1)
        joint = np.zeros((len(prior), n))
        joint[np.arange(len(prior)), np.arange(len(prior)) % n] = window[1].reshape(-1)
    occurs = (prior > 0) & joint.any(axis=1)
    return Values(time, prior[occurs], joint[occurs])


def log_of(lift: float) -> float:
    """The logarithm of a lift, -inf of none."""
    return math.log(lift) if lift > 0 else -math.inf
