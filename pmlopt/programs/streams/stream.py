"""Streams: sequential releases of a Markov secret, each designed given the exact earlier leakage
accounted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np

from pmlopt.core.numbers.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    Label,
    Labels,
    abbreviate,
    check_nonnegative,
    indices_of,
    select_labels,
)
from pmlopt.core.records.fields import Record, Shape
from pmlopt.data.chain import Chain
from pmlopt.data.mechanism import Mechanism, MechanismLike, as_mechanism
from pmlopt.data.prior import Prior
from pmlopt.data.sampling.categorical import Seed, make_generator
from pmlopt.errors import MechanismError, PrivacyError, UtilityError
from pmlopt.model.privacy import PML, Requirement
from pmlopt.model.utility import ExpectedGain, ExpectedLoss, LinearUtility, UtilityLike, as_utility
from pmlopt.programs.streams.belief import MIN_BELIEF_MASS, BeliefTarget, BoundedBelief, ExactBelief

if TYPE_CHECKING:
    from pmlopt.programs.linear.program import LinearDesign
    from pmlopt.programs.program import Outputs
    from pmlopt.programs.result import Result

About: TypeAlias = Literal["state", "path"] | int | Mapping[Any, Any] | Labels


class Stream:
    """The sequential releases Y_1, Y_2, ... of a Markov chain's states under one total leakage level.

    Each release may depend on those before. After each of them, for every output sequence that can be,

        log(P(x_s | y_1..y_t) / P(x_s)) <= epsilon              of each state, past, present and future
        log(P(x_1..x_t | y_1..y_t) / P(x_1..x_t)) <= epsilon    about="path": of all states together
        the same of each w states in a row                     about=w
        the same of each f(x_s), past, present and future      about={state: f(state)}

    The belief of an adversary who knows the chain and all releases is kept exactly; the next release is a
    design under it, with a ratio bound for each past value that still matters. Future states need none: what
    the releases reveal of them they reveal through the present one. Values of a function of the state are a
    hidden Markov chain; more may be revealed of one to come than of the present one, so that they have bounds
    too, for as long as the chain remembers.

    Args:
        chain: the secret, with the kernels that the adversary knows.
        privacy: `PML(epsilon)`.
        utility: a linear utility of each state and its output, such as "hamming" or "absolute".
        about: what is protected, see above; the values of a function by state, or in the states' order.
        caps: the levels up to which the first, second, ... release may go, in nats, the last one from then
            on; left out, 0.9 epsilon (see `linear_caps`). Of a value that is at the cap a release may use a
            tenth of what is left of epsilon. Values of the past fall away, and cost no time, once all that
            can still be revealed of them is within epsilon. A bound that no release can
            break is left out from then on, so that of what it bounds a cap states nothing and epsilon holds.
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

    DEFAULT_CAP_FRACTION: ClassVar[float] = 0.9
    """Of epsilon, the cap where no one states."""

    def __init__(
        self,
        chain: Chain,
        privacy: PML,
        utility: UtilityLike,
        about: About = "state",
        caps: Iterable[float] | None = None,
        outputs: Outputs = None,
    ) -> None:
        from pmlopt.programs.program import resolve_outputs

        if not isinstance(privacy, Requirement) or privacy.find_plain_pml_level() is None:
            raise PrivacyError(
                f"the requirement is {privacy!r}: a stream is under PML(epsilon) of what is asked about"
            )
        loss = as_utility(utility)
        if not isinstance(loss, LinearUtility):
            raise UtilityError(
                f"the utility is {utility!r}: give a gain or loss of a state and an output"
            )
        self.about, asked = _parse_target(chain, about)
        self.chain = chain
        self.privacy = privacy
        self.utility = loss
        self.outputs = resolve_outputs(chain.labels, loss.fixed_outputs, outputs)
        self.caps = (
            None
            if caps is None
            else tuple(check_nonnegative(cap, "a cap", PrivacyError) for cap in caps)
        )
        if self.caps == ():
            raise PrivacyError(
                "there are no caps: give one for each of the first releases, or leave them out"
            )
        self.table = loss.evaluate_table(chain.labels, self.outputs)
        """(N, M) the gain or loss of a state and an output."""
        self._released: tuple[tuple[Label, FloatArray], ...] = ()
        self._levels: tuple[float, ...] = ()
        self._worst: dict[int, float] = {}
        self._solved: Result[Any] | None = None
        if chain.over is not None and about != "state":
            raise PrivacyError(
                f"about is {about!r}, and the kernels of the chain are within bounds: for such a chain it is "
                "'state'"
            )
        self._belief: ExactBelief | BoundedBelief = (
            ExactBelief.build_initial(asked)
            if chain.over is None
            else BoundedBelief.build_initial(chain, privacy.epsilon)
        )

    def copy(self) -> Stream:
        """Copy the stream at its current time; solved designs are shared."""
        other = copy(self)
        other._worst = dict(self._worst)
        return other

    def replay_under(self, chain: Chain) -> Stream:
        """Replay the same releases for another chain, to evaluate their leakage under it.

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
            >>> # log(2 r^3 / (1 + r^3)), r of one release
            >>> stays = stream.replay_under(Chain([0.5, 0.5], np.eye(2)))
            >>> round(stream.level, 3), round(stays.level, 3)
            (0.36, 0.633)
        """
        if chain.labels != self.chain.labels:
            raise MechanismError(
                f"the other chain has the states {abbreviate(chain.labels)}: give one on the same states"
            )
        fresh = (self.privacy, self.utility, self.about, self.caps, self.outputs)
        own = Stream(self.chain, *fresh)
        other = Stream(chain, *fresh)
        for output, emits in self._released:
            strange = np.flatnonzero(other._possible_states & ~own._possible_states)
            if len(strange):
                label = chain.labels[int(strange[0])]
                raise MechanismError(
                    f"at time {own.time} the other chain can be in {label!r}, for which no release was made"
                )
            own.record_likelihoods(output, emits)
            other.record_likelihoods(output, emits)
        return other

    # ------------------------------------------------------------ what is known

    @property
    def time(self) -> int:
        """Return the time index of the next state to release, from 1."""
        return self._belief.time

    @property
    def history(self) -> Labels:
        """Return the outputs released so far."""
        return tuple(output for output, _ in self._released)

    @property
    def last_output(self) -> tuple[Label, FloatArray]:
        """Return the last output with its (N,) likelihoods by state."""
        return self._released[-1]

    @property
    def level(self) -> float:
        """Return the largest leakage about the target so far, in nats."""
        return self._levels[-1] if self._levels else 0.0

    @property
    def levels(self) -> tuple[float, ...]:
        """Return the cumulative leakage level after each release, in nats."""
        return self._levels

    @property
    def worst_levels(self) -> dict[int, float]:
        """Return the worst-case leakage about the state (or window) at each time so far, in nats.

        About a path there is one number, of all states up to now. A time that counts no more has the level
        that it had then, which does not change.
        """
        return dict(self._worst)

    @property
    def law(self) -> Prior:
        """Return the posterior law of the next state, restricted to possible states."""
        return Prior(
            self._belief.law[self._possible_states],
            select_labels(self.chain.labels, self._possible_indices.tolist()),
        )

    @property
    def _possible_states(self) -> BoolArray:
        """Return the (N,) mask of possible next states."""
        return self._belief.law > MIN_BELIEF_MASS

    @property
    def _possible_indices(self) -> IntArray:
        """Return the indices of possible next states."""
        return np.flatnonzero(self._possible_states)

    @property
    def cap(self) -> float:
        """Return the cumulative leakage cap of the next release, in nats."""
        return self.get_cap(self.time)

    def get_cap(self, time: int) -> float:
        """Return the cumulative leakage cap of the release at a time, in nats."""
        if self.caps is None:
            return self.DEFAULT_CAP_FRACTION * self.privacy.epsilon
        return min(self.caps[min(time, len(self.caps)) - 1], self.privacy.epsilon)

    # ------------------------------------------------------------ the next release

    @property
    def requirement(self) -> Requirement:
        """Return the requirement on the next release that keeps the cumulative level within the cap."""
        return self._belief.build_requirement(self.privacy.epsilon, self.cap)

    def program(self) -> LinearDesign:
        """Return the design problem of the next release."""
        from pmlopt.programs.designs import design

        if not self._possible_states.any():
            raise PrivacyError(
                f"the chain has {self.chain.steps} states, and all of them are released"
            )
        return design(
            self.law, self.requirement, self.restrict_utility(self._possible_states), self.outputs
        )

    def restrict_utility(self, states: BoolArray) -> LinearUtility:
        """Restrict the utility to some states."""
        return (ExpectedGain if self.utility.maximised else ExpectedLoss)(self.table[states])

    def solve(self, **options: Any) -> Result[Any]:
        """Solve the design of the next release with a certificate; cached until an output is recorded."""
        from pmlopt.programs.solving import solve

        if self._solved is None:
            self._solved = solve(self.program(), **options)
        return self._solved

    @property
    def mechanism(self) -> Mechanism:
        """Return the optimal mechanism of the next release, on the possible states."""
        return self.solve().mechanism

    def release(self, state: Label, seed: Seed = None) -> Label:
        """Draw an output for the current state, and record it.

        Raises:
            MechanismError: the chain cannot be in that state after these outputs.
        """
        known = self.mechanism.inputs
        if state not in known:
            raise MechanismError(
                f"the state {state!r} cannot be after these outputs: it is one of {abbreviate(known)}"
            )
        self.record(self.mechanism.sample([state], seed=seed)[0])
        return self.last_output[0]

    def skip(self) -> None:
        """Record a time step without a release (output "")."""
        self.record_likelihoods("", np.where(self._possible_states, 1.0, 0.0))

    def record(self, output: Label, mechanism: MechanismLike | None = None) -> None:
        """Record an output that was released.

        Args:
            output: a label of the mechanism.
            mechanism: that it was drawn from, on the states of `law`; left out, the one of `solve`. Another
                one is accounted for as exactly, whatever it reveals.

        Raises:
            MechanismError: the mechanism has other states, or never emits the output.
        """
        used = self.mechanism if mechanism is None else as_mechanism(mechanism)
        if used.shape[0] != len(self._possible_indices):
            raise MechanismError(
                f"the mechanism has {used.shape[0]} rows, and the state is one of "
                f"{abbreviate(self.law.labels)}"
            )
        rows = indices_of(self.law.labels, used.inputs, "the states", MechanismError)
        column = indices_of([output], used.outputs, "the output", MechanismError)[0]
        emits = np.zeros(self.chain.size)
        emits[self._possible_indices] = used.matrix[rows, column]
        self.record_likelihoods(used.outputs[column], emits)

    def record_likelihoods(self, output: Label, emits: FloatArray) -> None:
        """Record an output by its (N,) likelihoods by state.

        Raises:
            MechanismError: no state that is possible now emits it.
        """
        chance = float(self._belief.law @ emits)
        if chance <= 0:
            raise MechanismError(
                f"the output {output!r} cannot be: no state that is possible now emits it"
            )
        self._belief, level, worst = self._belief.update(emits)
        self._released += ((output, emits),)
        self._levels += (level,)
        self._worst.update(worst)
        # the design was for the belief before this output
        self._solved = None


def next_release(
    chain: Chain,
    privacy: PML,
    utility: UtilityLike,
    released: Iterable[Label] = (),
    about: About = "state",
    caps: Iterable[float] | None = None,
    outputs: Outputs = None,
) -> LinearDesign:
    """Build the design problem of the release that follows given outputs of a stream.

    Args:
        chain: the secret; see `Stream` for all but `released`.
        privacy: `PML(epsilon)`.
        utility: of a state and its output.
        released: the outputs so far.
        about: what is protected.
        caps: levels up to which releases may go.
        outputs: their labels.

    Examples:
        >>> from pmlopt import PML, solve
        >>> chain = Chain([0.5, 0.5], np.eye(2))
        >>> round(solve(next_release(chain, PML(0.4), "hamming", [0], caps=[0.2, 0.4])).value, 6)
        0.254088
    """
    stream = Stream(chain, privacy, utility, about, caps, outputs)
    for output in released:
        stream.record(output)
    return stream.program()


@dataclass(frozen=True, eq=False)
class StreamDeclaration(Record):
    """The serializable declaration of a stream.

    Attributes:
        table: (N, M) the gain or loss.
    """

    chain: Chain
    epsilon: float
    maximised: bool
    table: Annotated[FloatArray, Shape("states", "outputs")]
    about: Literal["state", "path"] | int | Labels
    caps: tuple[float, ...] | None
    outputs: Labels

    @classmethod
    def from_stream(cls, stream: Stream) -> StreamDeclaration:
        """Extract the declaration of a stream."""
        return cls(
            stream.chain,
            stream.privacy.epsilon,
            stream.utility.maximised,
            stream.table,
            stream.about,
            stream.caps,
            stream.outputs,
        )

    def make_stream(self) -> Stream:
        """Build a new stream without releases from the declaration."""
        utility = (ExpectedGain if self.maximised else ExpectedLoss)(self.table)
        return Stream(self.chain, PML(self.epsilon), utility, self.about, self.caps, self.outputs)


def _parse_target(
    chain: Chain, about: About
) -> tuple[Literal["state", "path"] | int | Labels, BeliefTarget]:
    """Parse the target of a stream from its user form."""
    n = chain.size
    if about in ("state", "path"):
        return about, BeliefTarget(chain, int(about == "state"), np.eye(n))
    if isinstance(about, int):
        if about < 1:
            raise PrivacyError(
                f"about is {about}: give 'state', 'path' or a number of states in a row"
            )
        # two to the 17th is too many: a larger power may not fit into memory
        if n ** min(about, 17) > 100_000:
            raise PrivacyError(
                f"{about} states in a row have more than 100,000 values, which is too many"
            )
        return about, BeliefTarget(chain, about, np.eye(n))
    if isinstance(about, Mapping):
        # more values than states would mean labels that the chain does not have
        lacking = [label for label in chain.labels if label not in about]
        if lacking or len(about) > n:
            raise PrivacyError(
                f"about has values for {abbreviate(list(about))}, and the states are "
                f"{abbreviate(chain.labels)}: give one "
                "for each"
            )
        values = tuple(about[label] for label in chain.labels)
    elif isinstance(about, tuple) and len(about) == n:
        values = about
    else:
        raise PrivacyError(
            f"about is {about!r}: give 'state', 'path', a number of states in a row, or a value for "
            "each state"
        )
    distinct = list(dict.fromkeys(values))
    return values, BeliefTarget(
        chain, 1, np.array([[value == one for value in values] for one in distinct], float)
    )


def linear_caps(epsilon: float, steps: int, first_fraction: float = 0.0) -> tuple[float, ...]:
    """Return level caps that grow linearly from a fraction of epsilon to epsilon, one per release.

    Args:
        epsilon: of the stream, in nats.
        steps: how many releases there are until epsilon is reached.
        first_fraction: f, of epsilon that the first releases may use at once: the cap of the t-th release is
            `epsilon (f + (1 - f) t / steps)`, constant for f = 1.

    Examples:
        >>> linear_caps(1.0, 4)
        (0.25, 0.5, 0.75, 1.0)
    """
    if steps < 1 or not 0 <= first_fraction <= 1:
        raise PrivacyError(
            f"there are {steps} steps and a first fraction of {first_fraction}: give one step or "
            "more, and a fraction from 0 to 1"
        )
    return tuple(
        epsilon * (first_fraction + (1 - first_fraction) * step / steps)
        for step in range(1, steps + 1)
    )


def sweep_caps(
    chain: Chain,
    privacy: PML,
    utility: UtilityLike,
    steps: int,
    first_fractions: Iterable[float] = (0.0, 0.25, 0.5, 0.75, 1.0),
    about: About = "state",
    runs: int = 50,
    seed: Any = None,
) -> dict[float, float]:
    """Simulate the mean utility per state for linear cap schedules with different first fractions.

    Each schedule is `linear_caps(0.9 epsilon, steps, first_fraction)`. States are drawn from the chain, the
    same ones for each schedule, and of each release the expected loss or gain under the belief is taken.

    Args:
        chain: of the stream.
        privacy: `PML(epsilon)`.
        utility: a linear one.
        steps: how many states.
        first_fractions: of the cap, what the first release may use; 1 is a constant cap.
        about: as that of the stream.
        runs: how many sequences of states are drawn.
        seed: of the states and the releases.

    Returns:
        By first fraction.

    Examples:
        >>> chain = Chain([0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]])  # forgets at once: caps only take away
        >>> found = sweep_caps(chain, PML(0.4), "hamming", 2, (0.5, 1.0), runs=2, seed=1)
        >>> found[1.0] < found[0.5]
        True
    """
    found: dict[float, float] = {}
    # each run has a generator of its own: schedules see the same states, whatever they draw
    begun = int(make_generator(seed).integers(2**62))
    for share in first_fractions:
        caps = linear_caps(Stream.DEFAULT_CAP_FRACTION * privacy.epsilon, steps, share)
        first = Stream(chain, privacy, utility, about, caps)
        known: dict[Labels, Stream] = {(): first}
        values = []
        for run in range(runs):
            rng = make_generator([begun, run])
            now = first
            state = int(rng.choice(chain.size, p=chain.initial))
            for step in range(1, steps + 1):
                values.append(now.solve().value)
                told = now.copy()
                told.release(chain.labels[state], rng)
                now = known.setdefault(told.history, told)
                if step < steps:
                    state = int(rng.choice(chain.size, p=chain.kernel(step)[state]))
        found[share] = float(np.mean(values))
    return found


def stream_bounds(
    chain: Chain, privacy: PML, utility: UtilityLike, steps: int, outputs: Outputs = None
) -> tuple[float, ...]:
    """Bound the utility of every policy at each of the first states, by a design with the full level epsilon.

    A policy whose outputs reveal at most epsilon of X_t has, given the state, the law of an output at time t
    as a mechanism of that level under the law of X_t; its expected loss is at least the least one.

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

    bounds = []
    law = chain.initial
    first = Stream(chain, privacy, utility, outputs=outputs)
    for time in range(1, steps + 1):
        occurs = law > MIN_BELIEF_MASS
        bounds.append(
            solve(design(Prior(law[occurs]), privacy, first.restrict_utility(occurs))).bound
        )
        law = law @ chain.kernel(time) if time < steps else law
    return tuple(bounds)
