"""Streams: releases of a secret that moves, each designed under what the others told, exactly accounted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from pmlopt.core.arrays import BoolArray, FloatArray, IntArray, Label, few, nonnegative, places_of, subset_of
from pmlopt.data.chain import Chain
from pmlopt.data.mechanism import Mechanism, MechanismLike, as_mechanism
from pmlopt.data.prior import Prior
from pmlopt.data.sampling.categorical import Seed
from pmlopt.errors import MechanismError, PrivacyError, UtilityError
from pmlopt.model.privacy import PML, RatioBound, Requirement
from pmlopt.model.utility import ExpectedGain, ExpectedLoss, LinearUtility, UtilityLike, as_utility

if TYPE_CHECKING:
    from pmlopt.programs.design_program import Outputs
    from pmlopt.programs.linear.program import LinearDesign
    from pmlopt.programs.result import Result

About: TypeAlias = Literal["state", "path"] | int

RESERVE = 1e-12
"""Nats of the level that steps leave free, each less than the one before, so that a constant has room."""

CAP_SHARE = 0.9
"""Of epsilon, the cap where nobody says."""

PART = 0.1
"""Of what is left of epsilon beyond the cap, what each release may use: so that the past falls away."""

RARE = 1e-280
"""The probability below which a state is taken for one that cannot be."""

FORGOTTEN = 1e-15
"""How far what is believed of the present may differ by a past value that counts no more."""

MOST_WINDOWS = 100_000
"""The largest number of values that a window of states may have."""


@dataclass(frozen=True)
class _Past:
    """Values of the state at one time, or of a window of states: what they have to do with the present.

    Attributes:
        time: of the last state of the window.
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


@dataclass(frozen=True)
class _Belief:
    """What is believed before the release at a time.

    Attributes:
        time: of the present state.
        law: (N,) of the present state.
        pasts: the values that count, the last of them those of the present state or window.
        window: (prior, posterior) of the last states, with an axis for each.
        peaks: (N,) the largest lift of a path that ends in each state.
        level: the largest level of what counts no more.
    """

    time: int
    law: FloatArray
    pasts: tuple[_Past, ...]
    window: tuple[FloatArray, FloatArray]
    peaks: FloatArray
    level: float


class Stream:
    """Releases Y_1, Y_2, ... of the states of a Markov chain, one for each state, within one level for all.

    Each release may depend on those before. After each of them, for every output sequence that can be,

        log P(x_s | y_1..y_t) / P(x_s) <= epsilon              of each state, past, present and future
        log P(x_1..x_t | y_1..y_t) / P(x_1..x_t) <= epsilon    about="path": of all states together
        the same of each w states in a row                     about=w

    The belief of an adversary who knows the chain and all releases is kept exactly; the next release is a
    design under it, with a ratio bound for each past value that still matters. Future states need none: what
    the releases tell of them they tell through the present one.

    Args:
        chain: the secret, with the kernels that the adversary knows.
        privacy: `PML(epsilon)`.
        utility: a linear utility of each state and its output, such as "hamming" or "absolute".
        about: what is protected, see above.
        caps: the levels up to which the first, second, ... release may go, in nats, the last one from then
            on; left out, 0.9 epsilon (see `linear_caps`). Of a value that is at the cap a release may use a
            tenth of what is left of epsilon. Values of the past fall away, and cost no time, once all that
            can still be told of them is within epsilon.
        outputs: as those of `design`.

    Raises:
        PrivacyError: the requirement is not PML of the data under its prior, or `about` or a cap cannot be
            meant.
        UtilityError: the utility is not linear.

    Source: Bayes' rule; for the path the recursion of [viterbi1967error].

    Examples:
        >>> from pmlopt import PML
        >>> chain = Chain([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], ["home", "out"])
        >>> stream = Stream(chain, PML(0.4), "hamming", caps=[0.2, 0.4])
        >>> round(stream.solve().value, 6)  # 1 - e^0.2 / 2
        0.389299
        >>> stream.record("home")
        >>> round(stream.level, 6)
        0.2
        >>> stream.release("out", seed=1)
        'out'
        >>> stream.level <= 0.4
        True
    """

    def __init__(
        self,
        chain: Chain,
        privacy: PML,
        utility: UtilityLike,
        about: About = "state",
        caps: Iterable[float] | None = None,
        outputs: Outputs = None,
    ) -> None:
        from pmlopt.programs.design_program import outputs_of

        if not isinstance(privacy, PML) or privacy.over is not None:
            raise PrivacyError(
                f"the requirement is {privacy!r}: a stream is under PML(epsilon) of what is asked about"
            )
        loss = as_utility(utility)
        if not isinstance(loss, LinearUtility):
            raise UtilityError(f"the utility is {utility!r}: give a gain or loss of a state and an output")
        if about not in ("state", "path") and not (isinstance(about, int) and about >= 1):
            raise PrivacyError(f"about is {about!r}: give 'state', 'path' or a number of states in a row")
        self.chain, self.privacy, self.utility, self.about = chain, privacy, loss, about
        self.outputs = outputs_of(chain.labels, loss.columns, outputs)
        self.caps = None if caps is None else tuple(nonnegative(cap, "a cap", PrivacyError) for cap in caps)
        if self.caps == ():
            raise PrivacyError(
                "there are no caps: give one for each of the first releases, or leave them out"
            )
        self.table = loss.table(chain.labels, self.outputs)
        """(N, M) the gain or loss of a state and an output."""
        self._length = 1 if isinstance(about, str) else about
        if chain.size**self._length > MOST_WINDOWS:
            raise PrivacyError(
                f"{about} states in a row have {chain.size**self._length:,} values: that is too many"
            )
        self._released: tuple[tuple[Label, FloatArray], ...] = ()
        self._levels: tuple[float, ...] = ()
        self._worst: dict[int, float] = {}
        self._solved: Result[Any] | None = None
        self._belief = self._begun()

    def _begun(self) -> _Belief:
        first = self.chain.initial
        occurs = first > 0
        past = _Past(1, first[occurs], np.diag(first)[occurs])
        return _Belief(1, first, (past,), (first, first), np.where(occurs, 1.0, 0.0), -math.inf)

    def copy(self) -> Stream:
        """The stream as it is now, to go on from in another way; what was solved is shared."""
        other = copy(self)
        other._worst = dict(self._worst)
        return other

    def under(self, chain: Chain) -> Stream:
        """The same releases of a secret that moves by another chain: what they tell if that is the truth.

        The levels of the result are those under the other chain, and may be above epsilon: nothing was
        designed for it. Its own next release is.

        Args:
            chain: on the same states.

        Raises:
            MechanismError: the other chain has other states, or can be in one that no release was made for.

        Examples:
            >>> forgetful = Chain([0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]])
            >>> stream = Stream(forgetful, PML(0.4), "hamming")
            >>> for _ in range(3):
            ...     stream.record(0)
            >>> stays = stream.under(Chain([0.5, 0.5], np.eye(2)))  # log(2 r^3 / (1 + r^3)), r of one release
            >>> round(stream.level, 3), round(stays.level, 3)
            (0.36, 0.633)
        """
        if chain.labels != self.chain.labels:
            raise MechanismError(
                f"the other chain has the states {few(chain.labels)}: give one on the same states"
            )
        fresh = (self.privacy, self.utility, self.about, self.caps, self.outputs)
        own, other = Stream(self.chain, *fresh), Stream(chain, *fresh)
        for output, emits in self._released:
            strange = np.flatnonzero(other._possible & ~own._possible)
            if len(strange):
                label = chain.labels[int(strange[0])]
                raise MechanismError(
                    f"at time {own.time} the other chain can be in {label!r}, for which no release was made"
                )
            own.take(output, emits)
            other.take(output, emits)
        return other

    # ------------------------------------------------------------ what is known

    @property
    def time(self) -> int:
        """Of the state that is released next; 1 before any release."""
        return self._belief.time

    @property
    def history(self) -> tuple[Label, ...]:
        """The outputs so far."""
        return tuple(output for output, _ in self._released)

    @property
    def last(self) -> tuple[Label, FloatArray]:
        """The last output, and the (N,) chance of it in each state; something must be released."""
        return self._released[-1]

    @property
    def level(self) -> float:
        """What the outputs so far tell of what is asked about, at most, in nats; 0 before any."""
        return self._levels[-1] if self._levels else 0.0

    @property
    def levels(self) -> tuple[float, ...]:
        """The level after each release."""
        return self._levels

    @property
    def worst(self) -> dict[int, float]:
        """What the outputs so far tell of the state at each time, or of the window that ends there, in nats.

        About a path there is one number, of all states up to now. A time that counts no more has the level
        that it had then, which does not change.
        """
        return dict(self._worst)

    @property
    def law(self) -> Prior:
        """The law of the next state after the releases so far, on the states that it can be."""
        return Prior(self._belief.law[self._possible], subset_of(self.chain.labels, self._places.tolist()))

    @property
    def _possible(self) -> BoolArray:
        return np.asarray(self._belief.law > RARE)

    @property
    def _places(self) -> IntArray:
        return np.flatnonzero(self._possible)

    @property
    def cap(self) -> float:
        """The level up to which the next release may go, in nats."""
        if self.caps is None:
            return CAP_SHARE * self.privacy.epsilon
        own = self.caps[min(self.time, len(self.caps)) - 1]
        return min(own, self.privacy.epsilon)

    # ------------------------------------------------------------ the next release

    @property
    def requirement(self) -> Requirement:
        """What the next release must meet under `law`, that the level stays within the cap."""
        law, possible = self._belief.law[self._possible], self._possible
        if self.about == "path":
            return PML(self._left(np.log(self._belief.peaks[possible])).tolist())
        rows, budgets = [], []
        present, most = self._belief.pasts[-1], np.full(self.chain.size, math.inf)
        for past in (present, *self._belief.pasts[:-1]):
            given, told = past.joint[:, possible] / past.joint.sum(axis=1, keepdims=True), np.log(past.lifts)
            left = self._left(told)
            # other bounds hold whatever is released, now or ever, or as means of those on the present state
            odds = (given / law).max(axis=1)
            binds = odds > np.exp(np.maximum(left, self.privacy.epsilon - RESERVE - told))
            if past is present:
                most[past.joint.argmax(axis=1)] = np.where(binds, np.exp(left), odds)
            elif self._length == 1:
                binds &= given @ most[possible] > np.exp(left) * (1 - 1e-14)
            rows.append(given[binds])
            budgets.append(left[binds])
        numerators, each = np.vstack(rows), np.concatenate(budgets)
        if not len(each):
            return PML(self.law.max_leakage)  # whatever is told is within the level
        return RatioBound(numerators, np.tile(law, (len(each), 1)), each)

    def _left(self, told: FloatArray) -> FloatArray:
        """What the next release may tell beyond what was told, in nats."""
        rest = self.privacy.epsilon - RESERVE - told
        room = RESERVE / (self.time * (self.time + 1))
        return np.asarray(np.maximum(np.maximum(self.cap - RESERVE - told, PART * rest), room))

    def program(self) -> LinearDesign:
        """The design of the next release: the utility under the belief, within what the level leaves."""
        from pmlopt.programs.designs import design

        if not self._possible.any():
            raise PrivacyError(f"the chain has {self.chain.steps} states, and all of them are released")
        return design(self.law, self.requirement, self._utility_of(self._possible), self.outputs)

    def _utility_of(self, states: BoolArray) -> LinearUtility:
        """The gain or loss of some states."""
        return (ExpectedGain if self.utility.maximised else ExpectedLoss)(self.table[states])

    def solve(self, **options: Any) -> Result[Any]:
        """The next release, solved with a proof; the same until it is recorded."""
        from pmlopt.programs.solving import solve

        if self._solved is None:
            self._solved = solve(self.program(), **options)
        return self._solved

    @property
    def mechanism(self) -> Mechanism:
        """That of the next release, on the states that the present one can be."""
        return self.solve().mechanism

    def release(self, state: Label, seed: Seed = None) -> Label:
        """Draw the next output from the state, and record it.

        Raises:
            MechanismError: the chain cannot be in that state after these outputs.
        """
        known = self.mechanism.inputs
        if state not in known:
            raise MechanismError(
                f"the state {state!r} cannot be after these outputs: it is one of {few(known)}"
            )
        self.record(self.mechanism.sample([state], seed=seed)[0])
        return self.last[0]

    def skip(self) -> None:
        """Release nothing of the present state: time goes on, and the output is ""."""
        self.take("", np.where(self._possible, 1.0, 0.0))

    def record(self, output: Label, mechanism: MechanismLike | None = None) -> None:
        """Take note of an output that was released.

        Args:
            output: a label of the mechanism.
            mechanism: that it was drawn from, on the states of `law`; left out, the one of `solve`. Another
                one is accounted for as exactly, whatever it tells.

        Raises:
            MechanismError: the mechanism has other states, or never emits the output.
        """
        used = self.mechanism if mechanism is None else as_mechanism(mechanism)
        if used.shape[0] != len(self._places):
            raise MechanismError(
                f"the mechanism has {used.shape[0]} rows, and the state is one of {few(self.law.labels)}"
            )
        rows = places_of(self.law.labels, used.inputs, "the states", MechanismError)
        column = places_of([output], used.outputs, "the output", MechanismError)[0]
        emits = np.zeros(self.chain.size)
        emits[self._places] = used.matrix[rows, column]
        self.take(used.outputs[column], emits)

    def take(self, output: Label, emits: FloatArray) -> None:
        """Take note of an output by the (N,) chance of it in each state.

        Raises:
            MechanismError: no state that is possible now emits it.
        """
        chance = float(self._belief.law @ emits)
        if chance <= 0:
            raise MechanismError(f"the output {output!r} cannot be: no state that is possible now emits it")
        self._released += ((output, emits),)
        self._after(emits / chance)
        self._solved = None

    def _after(self, ratio: FloatArray) -> None:
        """Update the belief by the (N,) chances of the output over their mean, and move on."""
        belief = self._belief
        pasts = [replace(past, joint=past.joint * ratio) for past in belief.pasts]
        window = (belief.window[0], belief.window[1] * ratio)  # the last axis is the present state
        peaks = belief.peaks * ratio
        if self.about == "path":
            level = _log(peaks.max())
            self._worst = {self.time: level}
        else:
            for past in pasts:
                self._worst[past.time] = _log(past.lifts.max())
            level = max(belief.level, *(self._worst[past.time] for past in pasts))
        self._levels += (level,)
        self._belief = self._moved(replace(belief, window=window, peaks=peaks), pasts)

    def _moved(self, belief: _Belief, pasts: Sequence[_Past]) -> _Belief:
        """The belief before the next release; past the end of the chain there is nothing to believe."""
        if self.chain.steps == self.time:
            return replace(belief, time=self.time + 1, law=np.zeros(self.chain.size), pasts=())
        kernel = self.chain.kernel(self.time)
        law = np.asarray((belief.window[1].reshape(-1, self.chain.size)).sum(axis=0) @ kernel)
        law = law / law.sum()
        peaks = np.where(kernel > 0, belief.peaks[:, None], 0.0).max(axis=0)
        if self.about == "path":
            return replace(belief, time=self.time + 1, law=law, window=(law, law), peaks=peaks)
        kept, level = [], belief.level
        if self.time < self._length:
            pasts = ()  # the next window is longer, and tells all of this one
        for past in pasts:
            left = past.joint.any(axis=1)
            moved = replace(past, prior=past.prior[left], joint=past.joint[left] @ kernel)
            given = moved.joint / moved.joint.sum(axis=1, keepdims=True)
            if (np.abs(given - law) <= FORGOTTEN * law).all():
                level = max(level, _log(moved.lifts.max()))
            else:
                kept.append(moved)
        prior, posterior = (self._longer(table, kernel) for table in belief.window)
        flat, masses = prior.reshape(-1), posterior.reshape(-1)
        rows = np.flatnonzero((flat > 0) & (masses > 0))
        joint = np.zeros((len(rows), self.chain.size))
        joint[np.arange(len(rows)), rows % self.chain.size] = masses[rows]
        kept.append(_Past(self.time + 1, flat[rows], joint))
        return _Belief(self.time + 1, law, tuple(kept), (prior, posterior), peaks, level)

    def _longer(self, table: FloatArray, kernel: FloatArray) -> FloatArray:
        """The law of the last states with the next one, and without the first where they are too many."""
        found = table[..., None] * kernel
        return found.sum(axis=0) if found.ndim > self._length else found


def linear_caps(epsilon: float, steps: int, share: float = 0.0) -> tuple[float, ...]:
    """Caps that grow evenly up to epsilon: `epsilon (share + (1 - share) t / steps)` for the t-th release.

    Args:
        epsilon: of the stream, in nats.
        steps: how many releases there are until epsilon is reached.
        share: of epsilon that the first releases may use at once; 1 is a constant cap.

    Examples:
        >>> linear_caps(1.0, 4)
        (0.25, 0.5, 0.75, 1.0)
    """
    if steps < 1 or not 0 <= share <= 1:
        raise PrivacyError(
            f"there are {steps} steps and a share of {share}: give 1 or more, and one of 0 to 1"
        )
    return tuple(epsilon * (share + (1 - share) * step / steps) for step in range(1, steps + 1))


def stream_bounds(
    chain: Chain, privacy: PML, utility: UtilityLike, steps: int, outputs: Outputs = None
) -> tuple[float, ...]:
    """What no policy betters, for each of the first states: the best design with all of epsilon for it alone.

    A policy whose outputs tell at most epsilon of X_t has, given the state, the law of an output at time t as
    a mechanism of that level under the law of X_t; its expected loss is at least the least one.

    Args:
        chain: of the stream.
        privacy: `PML(epsilon)`.
        utility: a linear one.
        steps: how many states.
        outputs: as those of the stream.

    Examples:
        >>> chain = Chain([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]])
        >>> [round(loss, 6) for loss in stream_bounds(chain, PML(0.4), "hamming", 2)]
        [0.254088, 0.254088]
    """
    from pmlopt.programs.designs import design
    from pmlopt.programs.solving import solve

    bounds, law = [], chain.initial
    first = Stream(chain, privacy, utility, outputs=outputs)
    for time in range(1, steps + 1):
        occurs = law > RARE
        bounds.append(solve(design(Prior(law[occurs]), privacy, first._utility_of(occurs))).bound)
        law = law @ chain.kernel(time) if time < steps else law
    return tuple(bounds)


def _log(lift: float) -> float:
    return math.log(lift) if lift > 0 else -math.inf
