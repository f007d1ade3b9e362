"""The leakage of deterministic programs from how often each trace occurs, in exact fractions.

For a program `y = f(x)` every pointwise maximal leakage is `l(y) = -log P(y)`, whatever the prior of the
secrets: only the probabilities of the traces matter, and secrets need not be listed.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import accumulate, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from pmlopt.core.arrays import SUM_ATOL, DefaultLabels, Label, check_labels_of_size
from pmlopt.core.descriptions import describe_value
from pmlopt.core.letter_files import read_letter_texts
from pmlopt.data.labelled import Numbers, read_vector
from pmlopt.errors import InputError, MechanismError, PrivacyError

Unit: TypeAlias = Literal["nats", "bits"]


@dataclass(frozen=True)
class TraceClass:
    """Traces of one program that have the same probability.

    Attributes:
        trace: the trace, or what its class is called.
        probability: of each trace of the class.
        traces: how many there are.
    """

    trace: Label
    probability: Fraction
    traces: int = 1

    @property
    def mass(self) -> Fraction:
        """Return the probability of the class."""
        return self.probability * self.traces

    def compute_leakage(self, unit: Unit = "nats") -> float:
        """Compute the pointwise maximal leakage of each trace, `-log P(y)`."""
        return compute_log(1 / self.probability, unit)


@dataclass(frozen=True)
class TraceLeakage:
    """What the traces of a deterministic program reveal of its secret.

    Every method takes the unit of its levels, nats or bits; the properties are in nats. Probabilities are
    exact fractions, and levels are compared with them exactly.

    Attributes:
        classes: the traces that occur, by ascending probability: those that reveal most come first.

    Examples:
        >>> check = leakage_of_counts({"accept": 1, "reject": 2**32 - 1})
        >>> check.compute_level("bits"), round(check.level, 4)
        (32.0, 22.1807)
        >>> check.compute_tail(31, "bits"), check.compute_tail(32, "bits")
        (Fraction(1, 4294967296), Fraction(0, 1))
    """

    classes: tuple[TraceClass, ...]

    @property
    def traces(self) -> int:
        """Return the number of traces that occur."""
        return sum(one.traces for one in self.classes)

    @property
    def level(self) -> float:
        """Return the leakage level, `-log min P(y)`, in nats."""
        return self.compute_level()

    @property
    def maximal_leakage(self) -> float:
        """Return the maximal leakage in nats; of uniform secrets it is the min-entropy leakage."""
        return self.compute_maximal_leakage()

    min_entropy_leakage = maximal_leakage

    def compute_level(self, unit: Unit = "nats") -> float:
        """Compute the leakage level `-log min P(y)`: the most that a trace reveals."""
        return self.classes[0].compute_leakage(unit)

    def compute_maximal_leakage(self, unit: Unit = "nats") -> float:
        """Compute the maximal leakage, the logarithm of the number of traces.

        Source: [issa2020operational, Theorem 1]; for uniform secrets it is the min-entropy leakage
        [smith2009foundations, Theorem 1].

        Examples:
            >>> leakage_of_counts([5, 1, 1, 1]).compute_maximal_leakage("bits")
            2.0
        """
        return compute_log(Fraction(self.traces), unit)

    def compute_mean_leakage(self, unit: Unit = "nats") -> float:
        """Compute the mean of the leakage: the mutual information of secret and trace, `H(Y)`.

        Examples:
            >>> leakage_of_counts([2, 1, 1]).compute_mean_leakage("bits")
            1.5
        """
        return math.fsum(float(one.mass) * one.compute_leakage(unit) for one in self.classes)

    def leakage_law(self, unit: Unit = "nats") -> tuple[tuple[float, Fraction], ...]:
        """Compute the law of the leakage l(Y).

        Returns:
            Pairs of a leakage and its probability, by ascending leakage: what `measures.leakage_law` gives
            for the matrix of the program.

        Examples:
            >>> leakage_of_counts({"a": 2, "b": 1, "c": 1}).leakage_law("bits")
            ((1.0, Fraction(1, 2)), (2.0, Fraction(1, 2)))
        """
        groups = groupby(reversed(self.classes), key=lambda one: one.probability)
        masses = {p: sum((one.mass for one in group), Fraction(0)) for p, group in groups}
        return tuple((compute_log(1 / p, unit), mass) for p, mass in masses.items())

    def compute_tail(self, epsilon: float, unit: Unit = "nats") -> Fraction:
        """Compute the probability `P(l(Y) > epsilon)`, the mass of the traces with `P(y) < e^-epsilon`.

        Args:
            epsilon: a level, in the unit; at least 0.
            unit: nats or bits.

        Raises:
            PrivacyError: the level is negative or no number.

        Source: [grosse2025empirical, Definition 3].

        Examples:
            >>> leakage_of_counts({"a": 6, "b": 1, "c": 1}).compute_tail(2, "bits")
            Fraction(1, 4)
        """
        rare = [one for one in self.classes if exceeds_level(1 / one.probability, epsilon, unit)]
        return sum((one.mass for one in rare), Fraction(0))

    def compute_quantile(self, delta: Any, unit: Unit = "nats") -> float:
        """Compute the least level that the leakage exceeds with probability delta at most.

        Args:
            delta: in [0, 1): a float, a fraction, or text such as "1/3"; for 0 it is the level.
            unit: nats or bits.

        Raises:
            PrivacyError: delta is not in [0, 1).

        Source: [saeidian2026envelopes, eq. (9)].

        Examples:
            >>> leakage_of_counts({"a": 6, "b": 1, "c": 1}).compute_quantile("1/4", "bits")
            0.4150374992788438
        """
        allowed = read_fraction(delta, "delta", PrivacyError, below=1)
        over = accumulate(one.mass for one in self.classes)
        left = (one for one, mass in zip(self.classes, over, strict=True) if mass > allowed)
        return next(left).compute_leakage(unit)

    def compute_envelope(self, delta: Any, unit: Unit = "nats") -> float:
        """Compute the envelope: the leakage that no processing of the trace exceeds but for delta.

        With the probabilities in ascending order it is

            log max_k min(1 / P(y_k), k / delta).

        A processing reveals log t or more only by outcomes z with a trace y of `P(y) <= 1/t`, and each has at
        most the mass 1/t, which traces of larger probability can provide: k rare traces give
        `V(t) = min(1, k / t)`. It is `solve(envelope(prior, mechanism, delta))` in closed form.

        Args:
            delta: in [0, 1): a float, a fraction, or text such as "1/3"; for 0 it is the level.
            unit: nats or bits.

        Raises:
            PrivacyError: delta is not in [0, 1).

        Source: [saeidian2026envelopes, Theorem 2] for the envelope; the formula is that of
        `closed_forms.randomized_response_envelope` for a response that keeps every letter.

        Examples:
            >>> check = leakage_of_counts({"accept": 1, "reject": 2**32 - 1})
            >>> check.compute_envelope(2**-20, "bits")  # one accept in 2^20, after processing
            20.0
        """
        probability = read_fraction(delta, "delta", PrivacyError, below=1)
        if not probability:
            return self.compute_level(unit)
        rare = accumulate(one.traces for one in self.classes)
        pairs = zip(self.classes, rare, strict=True)
        return compute_log(max(min(1 / one.probability, k / probability) for one, k in pairs), unit)

    def __str__(self) -> str:
        """Return a sentence on the most revealing trace.

        Examples:
            >>> print(leakage_of_counts({"accept": 1, "reject": 3}))
            2 traces; 'accept' reveals most: 1.38629 nats (2 bits), with probability 1/4 each.
        """
        worst, nats, bits = self.classes[0], self.compute_level(), self.compute_level("bits")
        return (
            f"{self.traces} traces; {worst.trace!r} reveals most: {nats:.6g} nats ({bits:.6g} bits), with "
            f"probability {worst.probability} each."
        )


@dataclass(frozen=True)
class InputLeakages:
    """What a program reveals of its secret for each public input that an attacker may choose.

    Attributes:
        programs: the leakage for each public input.
    """

    programs: Mapping[Label, TraceLeakage]

    def rank_inputs(
        self, measure: Callable[[TraceLeakage], Any] = TraceLeakage.compute_level
    ) -> list[tuple[Label, Any]]:
        """Rank the public inputs by what they reveal, the worst first: the whole curve of a measure.

        Args:
            measure: of one program, such as `lambda program: program.compute_tail(20, "bits")`.

        Examples:
            >>> guesses = leakage_of_inputs({k: {"below": k, "other": 8 - k} for k in (1, 2, 4)})
            >>> guesses.rank_inputs(lambda program: program.compute_level("bits"))
            [(1, 3.0), (2, 2.0), (4, 1.0)]
        """
        found = [(name, measure(program)) for name, program in self.programs.items()]
        return sorted(found, key=itemgetter(1), reverse=True)

    @property
    def level(self) -> float:
        """Return the level under the worst input, in nats."""
        return float(self.rank_inputs()[0][1])

    @property
    def worst_input(self) -> Label:
        """Return the public input with the largest level."""
        return self.rank_inputs()[0][0]


def leakage_of_counts(counts: Numbers, traces: Numbers | None = None) -> TraceLeakage:
    """Compute what a deterministic program reveals, from how often each of its traces occurs.

    Args:
        counts: for each trace the number of secrets that have it (whole numbers of any size, of uniform
            secrets), or its probability; a mapping, a series, a frame of two columns, a file of one, or
            numbers without labels. Fractions may be text such as "1/3". Exact probabilities must sum to
            exactly one; floats to one up to rounding, and are divided by their sum. What never occurs has 0.
        traces: where a label stands for several traces that each have this count or probability, how many:
            numbers like `counts`, of the same labels.

    Raises:
        MechanismError: a count is negative, no number, or missing; none is positive; probabilities do not sum
            to one; or `traces` is of other labels, or no whole number.

    Source: `-log P(y)` is the pointwise maximal leakage of a deterministic channel [saeidian2023pointwise,
    Theorem 1], and the dynamic leakage of a run [chu2019quantifying].

    Examples:
        >>> found = leakage_of_counts({"fast": "1/4", "slow": "3/4"})
        >>> found.compute_level("bits"), found.traces
        (2.0, 2)
        >>> leakage_of_counts({"low byte": 2**56}, traces={"low byte": 256}).compute_level("bits")
        8.0
    """
    labels, values = read_labelled_numbers(counts, "the counts")
    numbers = [
        read_fraction(value, f"the counts: that of {label!r}")
        for label, value in zip(labels, values, strict=True)
    ]
    copies = [1] * len(labels) if traces is None else _read_copies(traces, labels)
    rows = [row for row in zip(labels, numbers, copies, strict=True) if row[1] * row[2]]
    total = sum((number * copy for _, number, copy in rows), Fraction(0))
    if not total:
        raise MechanismError("no trace occurs: give a count above 0 for at least one")
    has_floats = any(isinstance(value, float | np.floating) for value in values)
    is_counted = all(number.denominator == 1 for number in numbers)
    if not is_counted and abs(total - 1) > (SUM_ATOL if has_floats else 0):
        raise MechanismError(
            f"the probabilities sum to {total if total.denominator < 10**9 else float(total)}: give "
            "probabilities that sum to one, or whole numbers as counts"
        )
    classes = [TraceClass(label, number / total, copy) for label, number, copy in rows]
    return TraceLeakage(tuple(sorted(classes, key=lambda one: one.probability)))


def leakage_of_inputs(tables: Mapping[Any, Numbers]) -> InputLeakages:
    """Compute what a deterministic program reveals for each public input that an attacker may choose.

    Args:
        tables: for each public input the counts of the traces, as `leakage_of_counts` takes them.

    Raises:
        MechanismError: there is no input, or the counts of one are not usable; the message names it.

    Examples:
        >>> found = leakage_of_inputs({"short": {"a": 1, "b": 1}, "long": {"a": 1, "b": 15}})
        >>> found.worst_input, round(found.level / math.log(2), 9)
        ('long', 4.0)
    """
    if not isinstance(tables, Mapping) or not tables:
        raise MechanismError("give a mapping from each public input to the counts of its traces")
    found = {}
    for name, counts in tables.items():
        try:
            found[name] = leakage_of_counts(counts)
        except InputError as cause:
            raise MechanismError(f"the public input {name!r}: {cause}") from None
    return InputLeakages(found)


def compute_log(ratio: Fraction, unit: Unit = "nats") -> float:
    """Compute the logarithm of a fraction of at least 1 with all digits of a float.

    Examples:
        >>> compute_log(Fraction(2**64), "bits"), compute_log(1 + Fraction(1, 2**60)) == 2.0**-60
        (64.0, True)
    """
    check_unit(unit)
    if ratio < 2:
        # the difference of two logarithms would cancel
        nats = math.log1p(float(ratio - 1))
        return nats if unit == "nats" else nats / math.log(2)
    log = math.log if unit == "nats" else math.log2
    return log(ratio.numerator) - log(ratio.denominator)


def exceeds_level(ratio: Fraction, epsilon: float, unit: Unit = "nats") -> bool:
    """Return whether the logarithm of a fraction is above a level, decided exactly.

    Examples:
        >>> exceeds_level(Fraction(4), 2, "bits"), exceeds_level(Fraction(5), 2, "bits")
        (False, True)
        >>> exceeds_level(Fraction(4), math.log(4))  # the float is below log 4
        True
    """
    check_unit(unit)
    level, digits = read_fraction(epsilon, "epsilon", PrivacyError), 40
    if level > ratio.numerator.bit_length():
        return False
    if level == 0 or (unit == "bits" and level.denominator == 1):
        return bool(ratio > 2 ** int(level))
    # no other rational level is the logarithm of a rational, so a finite number of digits decides
    while True:
        with localcontext(Context(prec=digits)):
            scale = Decimal(2).ln() if unit == "bits" else Decimal(1)
            above, below = Decimal(ratio.numerator).ln(), Decimal(ratio.denominator).ln()
            limit_log = Decimal(level.numerator) * scale / Decimal(level.denominator)
            gap = above - below - limit_log
            if abs(gap) > (above + limit_log + 1).scaleb(3 - digits):
                return gap > 0
        digits *= 2


def check_unit(unit: str) -> None:
    """Raise an error for an unknown unit."""
    if unit not in get_args(Unit):
        raise InputError(f"the unit {unit!r} is not known: use 'nats' or 'bits'")


def read_fraction(
    value: Any, what: str, error: type[InputError] = MechanismError, below: float = math.inf
) -> Fraction:
    """Read a nonnegative number as an exact fraction.

    Examples:
        >>> read_fraction("1/3", "a count"), read_fraction(0.5, "a count"), read_fraction(2**64, "a count")
        (Fraction(1, 3), Fraction(1, 2), Fraction(18446744073709551616, 1))
    """
    plain = value.item() if isinstance(value, np.generic) else value
    text = plain if isinstance(plain, str) else ""
    try:
        # an exponent of many digits is a number that fills the memory
        if isinstance(plain, bool) or len(text) > 4_000 or re.search(r"[eE][+-]?\d{4}", text):
            raise TypeError
        number = Fraction(plain)
    except (TypeError, ValueError, ArithmeticError):
        found = describe_value(value)
        raise error(f"{what} must be a number, such as 3, 0.25 or '1/3', not {found}") from None
    if not 0 <= number < below:
        ends = "of at least 0" if below == math.inf else f"in [0, {below:g})"
        raise error(f"{what} is {value}: give a number {ends}")
    return number


def read_labelled_numbers(data: Any, what: str) -> tuple[Sequence[Label], Sequence[Any]]:
    """Read labels and numbers as they stand; the keys of a mapping may be of any kind."""
    if isinstance(data, Mapping):
        return tuple(data), list(data.values())
    if isinstance(data, os.PathLike) and Path(data).suffix.lower() == ".csv":
        labels, texts = read_letter_texts(data)
        return check_labels_of_size(labels, None, str(data), MechanismError), texts
    found = read_vector(data, what, MechanismError)
    return found.axes[0] or DefaultLabels(len(found.values)), list(found.values)


def _read_copies(data: Any, labels: Sequence[Label]) -> list[int]:
    """Read how many traces each label stands for, in the order of the labels."""
    what = "the numbers of traces"
    names, values = read_labelled_numbers(data, what)
    if isinstance(names, DefaultLabels) and len(names) == len(labels):
        names = labels
    numbers = [read_fraction(value, what) for value in values]
    if set(names) != set(labels) or any(number.denominator > 1 for number in numbers):
        raise MechanismError(f"{what} must be whole, one for each label of the counts")
    found = dict(zip(names, numbers, strict=True))
    return [int(found[label]) for label in labels]
