"""Sequential releases of many people's Markov states, with few shared designs per step."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from pmlopt.core.display import pluralize
from pmlopt.core.files import disk
from pmlopt.core.numbers.arrays import (
    SUM_ATOL,
    DefaultLabels,
    FloatArray,
    IntArray,
    Label,
    Labels,
    check_labels_of_size,
    select_labels,
    to_label_array,
)
from pmlopt.core.records.converters import to_plain
from pmlopt.core.records.fields import Context
from pmlopt.core.records.record import read_record
from pmlopt.data.chain import Chain
from pmlopt.data.mechanism import Mechanism, find_rows
from pmlopt.data.prior import Prior
from pmlopt.data.sampling.categorical import RowSampler, Seed, make_generator, make_random_bits
from pmlopt.errors import FileFormatError, InputError, MechanismError, PrivacyError
from pmlopt.programs.streams.belief import BoundedBelief, compute_budgets
from pmlopt.programs.streams.stream import Stream, StreamDeclaration
from pmlopt.releases.accounts.array_files import open_exclusively, read_arrays, write_arrays

FORMAT = "pmlopt-crowd"
POPULATION_FILE_VERSION = 1


@dataclass(frozen=True)
class _HistoryBeliefs:
    """The beliefs after H distinct release histories; see `BoundedBelief`.

    Attributes:
        time: of the present state.
        prior: (N,) the law of it before any release.
        law: (H, N) the law of it.
        times: (R,) s of each kept pair of a time and a value.
        states: (R,) the value.
        over: (H, R, N) `P(X_t = x, h | X_s = a) - e^epsilon P(X_t = x, h)` over P(h).
        settled: (H,) the most that will ever be revealed of pairs that are not kept, as a lift.
        level: (H,) what all releases so far reveal, as a lift.
        place: (people,) the history of each.
    """

    time: int
    prior: FloatArray
    law: FloatArray
    times: IntArray
    states: IntArray
    over: FloatArray
    settled: FloatArray
    level: FloatArray
    place: IntArray

    def check(self, states: int, people: int) -> None:
        """Validate the histories against the numbers of states and people.

        Raises:
            ValueError: an array has another shape, or a number that none can have.
        """
        groups = len(self.law)
        pairs = len(self.times)
        shapes = {
            "prior": (states,),
            "law": (groups, states),
            "times": (pairs,),
            "states": (pairs,),
            "over": (groups, pairs, states),
            "settled": (groups,),
            "level": (groups,),
            "place": (people,),
        }
        for name, shape in shapes.items():
            array = getattr(self, name)
            if array.shape != shape:
                raise ValueError(f"its {name} have the shape {array.shape}, not {shape}")
            if not np.isfinite(array).all():
                raise ValueError(f"its {name} have an entry that is not finite")
        for name, end in (("times", self.time + 1), ("states", states), ("place", groups)):
            array = getattr(self, name)
            if not ((array >= 0) & (array < end)).all():
                raise ValueError(f"its {name} have an entry that is not in 0, ..., {end - 1}")
        for name in ("prior", "law"):
            law = getattr(self, name)
            if (law < 0).any() or (np.abs(law.sum(axis=-1) - 1) > SUM_ATOL).any():
                raise ValueError(f"its {name} is no distribution")
        if (self.level < 1 - SUM_ATOL).any():
            raise ValueError("the level of a history is negative")

    def add_present_values(self, epsilon: float) -> _HistoryBeliefs:
        """Add the target values of the present state."""
        states = np.flatnonzero(self.prior > 0)
        own = np.repeat(-math.exp(epsilon) * self.law[:, None, :], len(states), axis=1)
        own[:, np.arange(len(states)), states] += self.law[:, states] / self.prior[states]
        return replace(
            self,
            times=np.concatenate([self.times, np.full(len(states), self.time)]),
            states=np.concatenate([self.states, states]),
            over=np.concatenate([self.over, own], axis=1),
        )


@dataclass(frozen=True)
class _ReleasePlan:
    """The mechanisms of the next release, with each history's mixing weight.

    Attributes:
        group: (H,) the design of each history.
        matrices: (G, N, M) the designs.
        laws: (G, M) of their outputs.
        shares: (H,) of the design, for each history; multiples of 2^-53.
    """

    group: IntArray
    matrices: FloatArray
    laws: FloatArray
    shares: FloatArray

    def compute_likelihoods(self, histories: IntArray, columns: IntArray) -> FloatArray:
        """Return the (K, N) output likelihoods by state for histories and output columns."""
        group = self.group[histories]
        share = self.shares[histories, None]
        return (
            share * self.matrices[group, :, columns]
            + (1 - share) * self.laws[group, columns][:, None]
        )


class StreamPopulation:
    """The sequential releases of many independent people over one Markov chain, with few designs per step.

    `Streams` solves a design for each history, and after some steps each person has a history of the own.
    Here histories after which nearly the same is believed share a design P, for what is believed on average
    among them. After a history h the mechanism is `m_h P + (1 - m_h) 1 q^T`, with the law q of the design's
    outputs and the largest share m_h in [0, 1] that keeps every bound after h: a formula, since the bounds
    are linear and hold where m_h is 0. So the level is within epsilon after each history, whatever the design
    is; what is believed is kept for each exactly, and the mechanism depends on outputs only, which are
    public.

    Levels are exact but for values of more than eight steps ago of which at most epsilon can be revealed by
    now,
    whatever is released: of those it is what can be revealed.

    Args:
        first: the stream of someone of whom nothing is released, about each state, over a known chain.
        people: their names, or how many there are; then they are numbered from 0.
        designs: how many there are at each step, at most.

    Raises:
        PrivacyError: the stream is another one, or there are no people or designs.

    Examples:
        >>> from pmlopt import PML
        >>> chain = Chain([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], ["home", "out"])
        >>> population = StreamPopulation(Stream(chain, PML(0.4), "hamming"), people=3)
        >>> len(population.release(["home", "out", "home"], seed=1))
        3
        >>> population.level <= 0.4
        True
    """

    def __init__(self, first: Stream, people: int | Iterable[Label], designs: int = 32) -> None:
        if first.history or first.about != "state" or first.chain.over is not None:
            raise PrivacyError(
                "a population begins with a stream of which nothing is released, about each state, over "
                "a chain without bounds on its kernels"
            )
        number, names = (people, None) if isinstance(people, int) else (None, people)
        self.names = check_labels_of_size(names, number, "the people", PrivacyError)
        if not self.names or designs < 1:
            raise PrivacyError(
                f"there are {len(self.names)} people and {designs} designs: give one or more of each"
            )
        self._first = first.copy()
        self._designs = designs
        n = first.chain.size
        none = np.zeros(0, dtype=np.int64)
        self._histories = _HistoryBeliefs(
            1,
            first.chain.initial,
            first.chain.initial[None],
            none,
            none,
            np.zeros((1, 0, n)),
            np.zeros(1),
            np.ones(1),
            np.zeros(len(self.names), dtype=np.int64),
        ).add_present_values(first.privacy.epsilon)
        self._told: list[IntArray] = []
        self._plan: _ReleasePlan | None = None

    @property
    def chain(self) -> Chain:
        """Return the common Markov chain."""
        return self._first.chain

    @property
    def people(self) -> int:
        """Return the number of people."""
        return len(self._histories.place)

    @property
    def time(self) -> int:
        """Return the time index of the next release."""
        return self._histories.time

    @property
    def histories(self) -> int:
        """Return the number of distinct release histories."""
        return len(self._histories.law)

    @property
    def levels(self) -> FloatArray:
        """Return the (people,) leakage about each person, in nats."""
        return np.log(self._histories.level)[self._histories.place]

    @property
    def levels_by_name(self) -> dict[Label, float]:
        """Return the leakage about each person, by name."""
        return dict(zip(self.names, self.levels.tolist(), strict=True))

    @property
    def new_stream(self) -> Stream:
        """Return the stream of a new person without releases."""
        return self._first.copy()

    @property
    def level(self) -> float:
        """Return the largest leakage about any person, in nats."""
        return float(np.log(self._histories.level.max()))

    def history(self, person: int) -> Labels:
        """Return the released outputs of a person."""
        return tuple(self._first.outputs[int(column[person])] for column in self._told)

    def release(self, states: Iterable[Label] | Mapping[Label, Label], seed: Seed = None) -> Any:
        """Draw and record the next output of each person.

        Args:
            states: of all people, by their names, or in their order.
            seed: for tests.

        Returns:
            The outputs, by the names or in the order that the states have.

        Raises:
            MechanismError: someone has no state, or cannot be in it, or a state is of no person.
            PrivacyError: the chain has ended.
        """
        now = self._histories
        if isinstance(states, Mapping):
            # a set: looking each person up in the tuple would be quadratic in the number of people
            known = set(self.names)
            wrong = [f"{who!r} is none of them" for who in states if who not in known]
            wrong += [f"{who!r} has no state" for who in self.names if who not in states]
            if wrong:
                raise MechanismError(
                    f"{wrong[0]}: give the state of each of the people of the population"
                )
            told = self.release([states[who] for who in self.names], seed)
            return dict(zip(self.names, told.tolist(), strict=True))
        rows = find_rows(self.chain.labels, states)
        if len(rows) != self.people:
            raise MechanismError(
                f"{pluralize(len(rows), 'state')} for {pluralize(self.people, 'person', 'people')}: "
                "give each one"
            )
        # refused before anything is drawn: an output of an impossible state has no posterior
        strange = np.flatnonzero(now.law[now.place, rows] <= 0)
        if len(strange):
            person = int(strange[0])
            raise MechanismError(
                f"person {person} cannot be in the state {self.chain.labels[rows[person]]!r} after these "
                "outputs"
            )
        plan = self._plan_release()
        own, (designs, n, _), bits = (
            plan.group[now.place],
            plan.matrices.shape,
            make_random_bits(seed),
        )
        # from the design with the history's chance, else from the law of its outputs
        coins = (bits.draw_words(self.people) >> np.uint64(11)).astype(
            float
        ) * 2.0**-53 < plan.shares[now.place]
        every = RowSampler(np.vstack([*plan.matrices, plan.laws]))
        columns = every.draw_outputs(np.where(coins, own * n + rows, designs * n + own), bits)
        width = len(self._first.outputs)
        # one key for each pair of history and output: people with equal pairs share a history
        keys, place = np.unique(now.place * width + columns, return_inverse=True)
        before, told = np.divmod(keys, width)
        self._histories = self._move_histories(
            before, plan.compute_likelihoods(before, told), place.reshape(-1)
        )
        self._told.append(columns.astype(np.int32))
        self._plan = None
        return to_label_array(self._first.outputs)[columns]

    def mechanism(self, person: int) -> Mechanism:
        """Return a person's mechanism for the next release, on possible states."""
        plan = self._plan_release()
        history = self._histories.place[person : person + 1]
        # (M,) all outputs after the same history, so each is one column of the mechanism
        every = np.arange(len(self._first.outputs))
        matrix = plan.compute_likelihoods(np.repeat(history, len(every)), every).T
        possible = np.flatnonzero(self._histories.law[history[0]] > 0)
        emitted = matrix[possible].any(axis=0)
        outputs = select_labels(self._first.outputs, np.flatnonzero(emitted).tolist())
        return Mechanism(
            matrix[np.ix_(possible, emitted)],
            select_labels(self.chain.labels, possible.tolist()),
            outputs,
        )

    # ------------------------------------------------------------ files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the state to an NPZ file atomically, with a content digest.

        Raises:
            FileFormatError: the file cannot be written, or its ending is not .npz.
        """
        disk.get_file_format(path, (".npz",))
        held = {name: getattr(self._histories, name) for name in _HistoryBeliefs.__annotations__}
        time = held.pop("time")
        told = np.array(self._told, dtype=np.int32).reshape(-1, self.people)
        about = {
            "format": FORMAT,
            "version": POPULATION_FILE_VERSION,
            "first": to_plain(StreamDeclaration.from_stream(self._first)),
            "designs": self._designs,
            "time": time,
            "people": None if isinstance(self.names, DefaultLabels) else self.names,
        }
        write_arrays(path, about, {**held, "told": told})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Load the state from a file; refuse a truncated or modified one.

        Raises:
            FileFormatError: the file is not there, holds no population, or was cut short or changed.
        """
        about, arrays, _, size = read_arrays(
            path, "stream population", FORMAT, POPULATION_FILE_VERSION
        )
        try:
            first = read_record(StreamDeclaration, about["first"], "first", Context(room=size))
            told = arrays.pop("told")
            names = about.get("people")
            # by the people whose histories the file holds: an array without rows claims any number
            if told.ndim != 2 or arrays["place"].shape != told.shape[1:]:
                raise ValueError(f"its outputs are of the shape {told.shape}")
            # people without names have none
            people = told.shape[1] if names is None else read_record(Labels, names, "people")
            population = cls(first.make_stream(), people, int(about["designs"]))
            begun = population._histories
            for name, array in arrays.items():
                kind = getattr(begun, name)
                if (array.dtype, array.ndim) != (kind.dtype, kind.ndim):
                    raise ValueError(f"its {name} are {array.dtype} in {array.ndim} dimensions")
            population._histories = _HistoryBeliefs(int(about["time"]), **arrays)
            population._histories.check(first.chain.size, population.people)
            outputs = len(population._first.outputs)
            if told.dtype != np.int32 or told.shape != (len(told), population.people):
                raise ValueError(f"its outputs are {told.dtype} of the shape {told.shape}")
            if not ((told >= 0) & (told < outputs)).all():
                raise ValueError(f"an output is none of the {outputs}")
        except (InputError, KeyError, TypeError, ValueError) as cause:
            raise FileFormatError(f"{path}: is not a stream population: {cause}") from None
        population._told = list(told)
        return population

    @classmethod
    @contextmanager
    def open(cls, path: str | os.PathLike[str]) -> Iterator[Self]:
        """Open a state file under a lock, and save it when the block ends.

        An exception leaves the file as it was: what was released in the block must not be published then.

        Examples:
            >>> import tempfile
            >>> from pathlib import Path
            >>> from pmlopt import PML
            >>> path = Path(tempfile.mkdtemp()) / "population.npz"
            >>> chain = Chain([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]])
            >>> StreamPopulation(Stream(chain, PML(0.4), "hamming"), people=2).save(path)
            >>> with StreamPopulation.open(path) as population:
            ...     outputs = population.release([1, 0], seed=1)
            >>> StreamPopulation.load(path).history(0) == (outputs[0],)
            True
        """
        with open_exclusively(path, cls, lambda population: population.time) as population:
            yield population

    # ------------------------------------------------------------ the next release

    def _plan_release(self) -> _ReleasePlan:
        """Compute the mechanisms of the next release, cached until it is made."""
        if self._plan is None:
            if not self._histories.law.any():
                raise PrivacyError(
                    f"the chain has {self.chain.steps} states, and all of them are released"
                )
            group = self._group_histories()
            designs = [self._design_group(group == k) for k in range(int(group.max()) + 1)]
            matrices, laws = (np.stack(parts) for parts in zip(*designs, strict=True))
            self._plan = _ReleasePlan(
                group, matrices, laws, self._max_weights(group, matrices, laws)
            )
        return self._plan

    def _group_histories(self) -> IntArray:
        """Assign each of the H histories to a design, splitting groups with dissimilar beliefs."""
        now = self._histories
        # few histories: each has a design made for its own belief, and no mixture is needed
        if len(now.law) <= self._designs:
            return np.arange(len(now.law))
        weights = np.bincount(now.place, minlength=len(now.law)).astype(float)
        size = now.over.shape[1] * now.over.shape[2]
        # Numbers by which histories are compared: projections of what is believed.
        seen = np.concatenate(
            [
                now.law,
                now.over.reshape(-1, size) @ make_generator(0).normal(size=(size, 16)) / size**0.5,
            ],
            axis=1,
        )
        group = np.zeros(len(now.law), dtype=np.int64)
        spread = {0: _principal_spread(seen, weights)}
        for new in range(1, self._designs):
            old = max(spread, key=lambda k: spread[k][0])
            # all members are equal in these numbers: a split would leave a group empty
            if spread[old][0] <= 0:
                break
            members = np.flatnonzero(group == old)
            _, middle, direction = spread[old]
            group[members[(seen[members] - middle) @ direction > 0]] = new
            for k in (old, new):
                own = group == k
                spread[k] = _principal_spread(seen[own], weights[own])
        return np.unique(group, return_inverse=True)[1].reshape(-1)

    def _design_group(self, own: Any) -> tuple[FloatArray, FloatArray]:
        """Design one (N, M) mechanism for a group of histories, from their mean belief."""
        from pmlopt.programs.designs import design
        from pmlopt.programs.solving import solve

        now = self._histories
        first = self._first
        weights = np.bincount(now.place, minlength=len(now.law))[own].astype(float)
        weights /= weights.sum()
        law = weights @ now.law[own]
        over = np.tensordot(weights, now.over[own], 1)
        apart = np.tensordot(weights, (now.over[own] - over) ** 2, 1) ** 0.5
        # Of what a bound leaves to a constant, how much a design is stricter at most.
        # It is stricter than for the group's mean by two standard deviations among its histories.
        more = 2.0 * apart
        room = -0.8 * over.sum(axis=1)
        # the margin must leave a constant output feasible, else the design has no solution
        over += more * np.minimum(1.0, room / np.maximum(more.sum(axis=1), 1e-300))[:, None]
        belief = BoundedBelief(
            first.chain,
            first.privacy.epsilon,
            now.time,
            law,
            law,
            (1.0, 1.0),
            np.stack([now.prior] * 2),
            now.times,
            now.states,
            over,
            over.sum(axis=1),
            -math.inf,
        )
        # states that cannot be would be letters of probability 0, which a prior does not allow
        possible = np.flatnonzero(law > 0)
        utility = first.restrict_utility(law > 0)
        asked = belief.build_requirement(first.privacy.epsilon, first.get_cap(now.time))
        found = solve(design(Prior(law[possible]), asked, utility, first.outputs)).mechanism
        matrix = np.zeros((len(law), len(first.outputs)))
        matrix[np.ix_(possible, find_rows(first.outputs, found.outputs))] = found.matrix
        output_law = law @ matrix
        matrix[law <= 0] = output_law
        return matrix, output_law / output_law.sum()

    def _max_weights(self, group: IntArray, matrices: FloatArray, laws: FloatArray) -> FloatArray:
        """Compute the (H,) largest mixing weights of a design that keep each history's bounds."""
        now = self._histories
        epsilon = self._first.privacy.epsilon
        cap = self._first.get_cap(now.time)
        shares = np.ones(len(now.law))
        for k, (matrix, output_law) in enumerate(zip(matrices, laws, strict=True)):
            for rows in _split_chunks(np.flatnonzero(group == k)):
                over = now.over[rows]
                law = now.law[rows]
                ends = over.sum(axis=2)
                lifts = math.exp(epsilon) + ends
                with np.errstate(divide="ignore"):
                    told = np.log(np.maximum(lifts, 1e-300))
                more = math.exp(epsilon) - np.exp(
                    told + compute_budgets(told, epsilon, cap, now.time)
                )
                more[over.max(axis=2) <= 0] = 0.0  # whatever is revealed is within epsilon
                # (H, R, M): what the design adds to each bound; the constant output adds -room
                above = over @ matrix + more[:, :, None] * (law @ matrix)[:, None, :]
                # the constraint is linear in the weight w: w above <= (1 - w) room
                room = -(ends + more)[:, :, None] * output_law
                with np.errstate(divide="ignore", invalid="ignore"):
                    most = np.where(above > 0, room / (above + room), 1.0).min(axis=(1, 2))
                # Of the largest share of a design that a history allows, what is used: rounding never helps
                # the claim.
                shares[rows] = np.where(most < 1, np.maximum(most, 0.0) * (1 - 1e-9), 1.0)
        return np.floor(shares * 2.0**53) / 2.0**53

    def _move_histories(
        self, before: IntArray, emits: FloatArray, place: IntArray
    ) -> _HistoryBeliefs:
        """Update the histories by output likelihoods to the next time step."""
        now = self._histories
        chain = self.chain
        factor = math.exp(self._first.privacy.epsilon)
        ended = chain.steps == now.time
        kernel = np.zeros((chain.size, chain.size)) if ended else chain.kernel(now.time)
        # Bayes: the chance of the output in each state over its chance under the belief
        ratios = emits / (now.law[before] * emits).sum(axis=1, keepdims=True)
        law = (now.law[before] * ratios) @ kernel
        sums = law.sum(axis=1, keepdims=True)
        law = law if ended else law / sums
        over = np.empty((len(before), *now.over.shape[1:]))
        most = np.empty(len(before))
        ends = np.empty(over.shape[:2])
        for rows in _split_chunks(np.arange(len(before))):
            own = now.over[before[rows]] * ratios[rows, None, :]
            most[rows] = factor + own.sum(axis=2).max(axis=1)
            over[rows] = own @ kernel
            with np.errstate(divide="ignore", invalid="ignore"):
                quotients = np.where(law[rows, None] > 0, over[rows] / law[rows, None], -math.inf)
            ends[rows] = factor + quotients.max(axis=2)
        # Steps for which a value is kept of which nothing more can be revealed than epsilon: its level is
        # then exact.
        done = (ends <= factor * (1 + 1e-14)).all(axis=0) & (now.times <= now.time - 8)
        settled = np.maximum(now.settled[before], ends[:, done].max(axis=1, initial=0.0))
        moved = replace(
            now,
            time=now.time + 1,
            prior=now.prior @ kernel,
            law=law,
            times=now.times[~done],
            states=now.states[~done],
            over=over[:, ~done] if done.any() else over,
            settled=settled,
            level=np.maximum(most, np.minimum(settled, factor)),
            place=place,
        )
        return moved if ended else moved.add_present_values(self._first.privacy.epsilon)


def _split_chunks(places: IntArray) -> Iterator[IntArray]:
    # Histories that are looked at at once.
    """Yield index slices of bounded size."""
    chunk = 4096
    for start in range(0, len(places), chunk):
        yield places[start : start + chunk]


def _principal_spread(
    seen: FloatArray, weights: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """Compute the principal component of weighted points: spread, mean and direction."""
    middle = weights @ seen / weights.sum()
    away = seen - middle
    # eigenvalues ascend: the last one belongs to the principal direction
    values, vectors = np.linalg.eigh((away * weights[:, None]).T @ away)
    return float(values[-1]) if len(seen) > 1 else 0.0, middle, vectors[:, -1]
