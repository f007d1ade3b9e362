"""Markov chains: secrets that move from step to step."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.core.declared_orders import find_declared_order, make_rank, merge_orders
from pmlopt.core.numbers.arrays import (
    SUM_ATOL,
    FloatArray,
    Label,
    Labels,
    abbreviate,
    check_labels_of_size,
    check_nonnegative,
    check_unmasked,
    copy_float_array,
)
from pmlopt.core.numbers.counts import LabelledSequences
from pmlopt.core.records.fields import Record, Shape
from pmlopt.errors import PriorError


@dataclass(frozen=True, eq=False, init=False)
class Chain(Record):
    """A Markov chain X_1, X_2, ...: `P(X_1 = x) = initial[x]`, `P(X_(t+1) = z | X_t = x) = K_t[x,z]`.

    Probabilities may be zero: states that cannot be reached, absorbing states, moves without choice.

    Args:
        initial: (N,) the law of the first state.
        kernels: (N, N) one kernel for all steps, or (T, N, N) one for each, so that there are T + 1 states.
        labels: of the states; left out, they are 0 to N - 1.
        over: two arrays like the kernels, the least and the largest chance of each move, where the kernels
            are not known: each kernel may be any one within them, another one at each step.

    Raises:
        PriorError: a probability is negative, a law does not sum to one (within 1e-9; it is divided by its
            sum), sizes differ, or a kernel is not within its bounds.

    Examples:
        >>> chain = Chain([1.0, 0.0], [[0.9, 0.1], [0.3, 0.7]], ["home", "out"])
        >>> chain.law(2).tolist(), chain.stationary().round(12).tolist()
        ([0.9, 0.1], [0.75, 0.25])
    """

    initial: Annotated[FloatArray, Shape("N")]
    kernels: Annotated[FloatArray, Shape("T", "N", "N")]
    labels: Labels
    over: Annotated[FloatArray, Shape("ends", "T", "N", "N")] | None

    def __init__(
        self,
        initial: ArrayLike,
        kernels: ArrayLike,
        labels: Iterable[Label] | None = None,
        over: Sequence[ArrayLike] | FloatArray | None = None,
    ) -> None:
        first = copy_float_array(initial, 1, "the law of the first state", PriorError)
        check_unmasked(kernels, "the kernels", PriorError)
        moves = np.asarray(kernels, dtype=float)
        moves = copy_float_array(
            moves[None] if moves.ndim == 2 else moves, 3, "the kernels", PriorError
        )
        if moves.shape[1:] != (len(first), len(first)) or not len(moves):
            raise PriorError(
                f"the kernels have the shape {moves.shape}, and there are {len(first)} states: a row "
                "and a column for each"
            )
        for what, laws in (
            ("the law of the first state", first[None]),
            ("a row of a kernel", moves),
        ):
            sums = laws.sum(axis=-1)
            if laws.min() < 0 or np.abs(sums - 1).max() > SUM_ATOL:
                wrong = float(sums.ravel()[np.abs(sums - 1).argmax()])
                raise PriorError(
                    f"{what} has the entry {laws.min():g} or the sum {wrong:.12g}: entries are at least 0, "
                    "and sum to one"
                )
        # laws within the tolerance are divided: an error would grow with each step of the chain
        first = normalize_laws(first)
        moves = normalize_laws(moves)
        names = check_labels_of_size(labels, len(first), "the states", PriorError)
        bounds = None if over is None else _check_kernel_bounds(moves, over)
        vars(self).update(initial=first, kernels=moves, labels=names, over=bounds)

    @classmethod
    def from_sequences(
        cls,
        sequences: Iterable[Sequence[Label]],
        smoothing: float = 0.0,
        labels: Iterable[Label] | None = None,
    ) -> Chain:
        """Estimate the chain from observed sequences, with additive smoothing.

        Args:
            sequences: the states of each person, in their order in time.
            smoothing: the number that is added; 0.5 is Jeffreys' prior, of which these are then the means.
            labels: the states; left out, those that occur, in ascending order.

        Raises:
            PriorError: a state is not among the labels, or nothing is known of where a state moves to.

        Examples:
            >>> Chain.from_sequences([["a", "a", "b"], ["b", "a", "a"]], 1.0).kernels[0].round(12).tolist()
            [[0.6, 0.4], [0.666666666667, 0.333333333333]]
        """
        names, firsts, moves = count_moves(sequences, labels)
        return cls(*smooth_counts(names, firsts, moves, smoothing), names)

    @property
    def size(self) -> int:
        """Return the number of states N."""
        return len(self.initial)

    @property
    def steps(self) -> int | None:
        """Return the length of a time-inhomogeneous chain; None for a homogeneous one."""
        return None if len(self.kernels) == 1 else len(self.kernels) + 1

    def kernel(self, time: int) -> FloatArray:
        """Return the (N, N) transition kernel at a time.

        Raises:
            PriorError: the chain has ended.
        """
        if self.steps is not None and not 1 <= time < self.steps:
            raise PriorError(f"the chain has {self.steps} states, and none after the {time}th")
        return np.asarray(self.kernels[0 if self.steps is None else time - 1])

    def kernel_bounds(self, time: int) -> tuple[FloatArray, FloatArray]:
        """Return the (N, N) lower and upper bounds on the transition kernel at a time."""
        kernel = self.kernel(time)
        if self.over is None:
            return kernel, kernel
        lower, upper = self.over[:, 0 if self.steps is None else time - 1]
        return lower, upper

    def law(self, time: int) -> FloatArray:
        """Compute the (N,) marginal law of the state at a time."""
        found = self.initial
        for step in range(1, time):
            found = found @ self.kernel(step)
        return found

    def stationary(self) -> FloatArray:
        """Compute the (N,) stationary law of the kernel.

        Raises:
            PriorError: kernels differ by step, or there is more than one such law.
        """
        if self.steps is not None:
            raise PriorError("the kernels differ from step to step: there is no stationary law")
        # law K = law and sum = 1: one equation more than unknowns, and consistent
        equations = np.vstack([self.kernels[0].T - np.eye(self.size), np.ones(self.size)])
        found, _, rank, _ = np.linalg.lstsq(
            equations, np.append(np.zeros(self.size), 1.0), rcond=1e-12
        )
        if rank < self.size:
            raise PriorError(
                "the chain has several stationary laws: some states cannot reach the others"
            )
        return np.asarray(np.maximum(found, 0.0) / np.maximum(found, 0.0).sum())


def normalize_laws(laws: FloatArray) -> FloatArray:
    """Normalize laws along the last axis by exact sums.

    So laws that were divided stay as they are when they are read again.

    Examples:
        >>> normalize_laws(np.array([[0.25, 0.75], [0.2, 0.2]])).tolist()
        [[0.25, 0.75], [0.5, 0.5]]
    """
    rows = laws.reshape(-1, laws.shape[-1])
    # exact sums: with those of floats a law that was divided would be divided again
    sums = np.array([math.fsum(row) for row in rows.tolist()])
    off = np.abs(sums - 1) > rows.shape[1] * np.finfo(float).eps
    divided = np.where(off[:, None], rows / np.where(off, sums, 1.0)[:, None], rows)
    return divided.reshape(laws.shape)


def _sort_states(states: Collection[Label], order: Sequence[Label] | None) -> list[Any]:
    """Return states in ascending order, which may be a declared one."""
    try:
        return sorted(states, key=make_rank(states, order))
    except TypeError:
        raise PriorError("the states have no order: give labels=") from None


def count_moves(
    sequences: Iterable[Sequence[Label]], labels: Iterable[Label] | None = None
) -> tuple[Labels, FloatArray, FloatArray]:
    """Count first states (N,) and transitions (N, N) of sequences.

    Raises:
        PriorError: a state is not among the labels, or there are none.
    """
    given = list(sequences)
    seen = [list(states) for states in given]
    if labels is None:
        if isinstance(sequences, LabelledSequences):
            order = sequences.order
        else:
            order = merge_orders(map(find_declared_order, given))
        labels = _sort_states({state for states in seen for state in states}, order)
    names = check_labels_of_size(labels, None, "the states", PriorError)
    place = {label: k for k, label in enumerate(names)}
    strange = next((state for states in seen for state in states if state not in place), None)
    if strange is not None or not any(seen):
        raise PriorError(
            "there are no states"
            if strange is None
            else f"{strange!r} is none of {abbreviate(names)}"
        )
    firsts = np.zeros(len(names))
    moves = np.zeros((len(names), len(names)))
    np.add.at(firsts, [place[states[0]] for states in seen if states], 1)
    pairs = [(place[a], place[b]) for states in seen for a, b in pairwise(states)]
    if pairs:
        np.add.at(moves, tuple(np.array(pairs).T), 1)
    return names, firsts, moves


def smooth_counts(
    labels: Labels, firsts: FloatArray, moves: FloatArray, smoothing: float
) -> tuple[FloatArray, FloatArray]:
    """Compute initial law and kernel from smoothed counts.

    Raises:
        PriorError: nothing is known of where a state moves to.
    """
    more = check_nonnegative(smoothing, "what is added to counts", PriorError)
    firsts = firsts + more
    moves = moves + more
    left = moves.sum(axis=1)
    if not left.all():
        raise PriorError(
            f"the data has no move from {labels[int(left.argmin())]!r}: give smoothing=0.5, or leave "
            "the state out"
        )
    return firsts / firsts.sum(), moves / left[:, None]


def _check_kernel_bounds(kernels: FloatArray, over: Sequence[ArrayLike] | FloatArray) -> FloatArray:
    """Validate kernel bounds as a (2, T, N, N) array."""
    for end in over:
        check_unmasked(end, "the bounds on kernels", PriorError)
    ends = [np.asarray(end, dtype=float) for end in over]
    if len(ends) != 2 or any(end.shape not in (kernels.shape, kernels.shape[1:]) for end in ends):
        raise PriorError(
            f"the bounds on kernels have the shapes {[end.shape for end in ends]}: give two arrays of the "
            f"shape {kernels.shape[1:]}"
        )
    found = np.stack([np.broadcast_to(end, kernels.shape) for end in ends])
    if (
        not ((found >= 0) & (found <= 1)).all()
        or not ((found[0] <= kernels + SUM_ATOL) & (kernels <= found[1] + SUM_ATOL)).all()
    ):
        raise PriorError(
            "a kernel is not within the bounds on kernels: give chances from 0 to 1, the least at most that "
            "of the kernel, and that at most the largest"
        )
    return np.stack([np.minimum(found[0], kernels), np.maximum(found[1], kernels)])
