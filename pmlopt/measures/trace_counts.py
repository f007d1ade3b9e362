"""The leakage of deterministic programs from how often each trace occurs, in exact fractions.

For a program `y = f(x)` every pointwise maximal leakage is `l(y) = -log P(y)`, whatever the prior of the
secrets: only the probabilities of the traces matter, and secrets need not be listed.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import accumulate, count, islice
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from pmlopt.core.descriptions import describe_value
from pmlopt.core.numbers.arrays import SUM_ATOL, DefaultLabels, Label
from pmlopt.data.labelled import Numbers, read_vector
from pmlopt.errors import InputError, MechanismError, PrivacyError

Unit: TypeAlias = Literal["nats", "bits"]


@dataclass(frozen=True)
class TraceLeakage:
    """What the traces of a deterministic program reveal of its secret.

    Every method takes the unit of its levels, nats or bits. Probabilities are exact fractions, and levels are
    compared with them exactly.

    Attributes:
        law: the probability of each trace that occurs, ascending: those that reveal most come first.

    Examples:
        >>> check = leakage_of_counts({"accept": 1, "reject": 2**32 - 1})
        >>> check.compute_level("bits"), round(check.level, 4)
        (32.0, 22.1807)
        >>> check.compute_tail(31, "bits"), check.compute_tail(32, "bits")
        (Fraction(1, 4294967296), Fraction(0, 1))
    """

    law: Mapping[Label, Fraction] = field(repr=False)

    @property
    def level(self) -> float:
        """Return the leakage level, `-log min P(y)`, in nats."""
        return self.compute_level()

    def compute_leakage(self, trace: Label, unit: Unit = "nats") -> float:
        """Compute the pointwise maximal leakage of a trace, `-log P(y)`."""
        return compute_log(1 / self.law[trace], unit)

    def compute_level(self, unit: Unit = "nats") -> float:
        """Compute the leakage level `-log min P(y)`: the most that a trace reveals."""
        return self.compute_leakage(next(iter(self.law)), unit)

    def compute_maximal_leakage(self, unit: Unit = "nats") -> float:
        """Compute the maximal leakage, the logarithm of the number of traces.

        For uniform secrets it is the min-entropy leakage, which `compute_min_entropy_leakage` is a name for.

        Source: [issa2020operational, Theorem 1]; [smith2009foundations, Theorem 1].

        Examples:
            >>> leakage_of_counts([5, 1, 1, 1]).compute_maximal_leakage("bits")
            2.0
        """
        return compute_log(Fraction(len(self.law)), unit)

    compute_min_entropy_leakage = compute_maximal_leakage

    def compute_mean_leakage(self, unit: Unit = "nats") -> float:
        """Compute the mean of the leakage: the mutual information of secret and trace, `H(Y)`.

        Examples:
            >>> leakage_of_counts([2, 1, 1]).compute_mean_leakage("bits")
            1.5
        """
        return math.fsum(level * float(share) for level, share in self.leakage_law(unit))

    def leakage_law(self, unit: Unit = "nats") -> tuple[tuple[float, Fraction], ...]:
        """Compute the law of the leakage l(Y).

        Returns:
            Pairs of a leakage and its probability, by ascending leakage: what `measures.leakage_law` gives
            for the matrix of the program.

        Examples:
            >>> leakage_of_counts({"a": 2, "b": 1, "c": 1}).leakage_law("bits")
            ((1.0, Fraction(1, 2)), (2.0, Fraction(1, 2)))
        """
        traces = Counter(self.law.values())
        return tuple((compute_log(1 / p, unit), p * traces[p]) for p in reversed(traces))

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
        traces = Counter(self.law.values())
        # the rarest come first and reveal most: few exact comparisons find where they end
        rare = bisect_left(
            list(traces), True, key=lambda p: not exceeds_level(1 / p, epsilon, unit)
        )
        return sum((p * times for p, times in islice(traces.items(), rare)), Fraction(0))

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
        masses = accumulate(self.law.values())
        over = (p for p, mass in zip(self.law.values(), masses, strict=True) if mass > allowed)
        return compute_log(1 / next(over), unit)

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
        most = max(min(1 / p, k / probability) for k, p in enumerate(self.law.values(), start=1))
        return compute_log(most, unit)


def leakage_of_counts(counts: Numbers) -> TraceLeakage:
    """Compute what a deterministic program reveals, from how often each of its traces occurs.

    Args:
        counts: for each trace the number of secrets that have it (whole numbers of any size, of uniform
            secrets), or its probability; a mapping, a series, a frame of two columns, or
            numbers without labels. Fractions may be text such as "1/3", and must sum to exactly one; floats
            and decimals to one up to rounding, and are divided by their sum. What never occurs has 0.

    Raises:
        MechanismError: a count is negative, no number, or missing; none is positive; or probabilities do not
            sum to one.

    Source: `-log P(y)` is the pointwise maximal leakage of a deterministic channel [saeidian2023pointwise,
    Theorem 1], and the dynamic leakage of a run [chu2019quantifying].

    Examples:
        >>> found = leakage_of_counts({"fast": "1/4", "slow": "3/4"})
        >>> found.compute_level("bits"), found.law["slow"]
        (2.0, Fraction(3, 4))
    """
    # the keys of a mapping may be of any kind
    if isinstance(counts, Mapping):
        labels = tuple(counts)
        values = list(counts.values())
    else:
        found = read_vector(counts, "the counts", MechanismError)
        labels = found.axes[0] or DefaultLabels(len(found.values))
        values = list(found.values)
    numbers = [
        read_fraction(value, f"the counts: that of {label!r}")
        for label, value in zip(labels, values, strict=True)
    ]
    total = sum(numbers, Fraction(0))
    if not total:
        raise MechanismError("no trace occurs: give a count above 0 for at least one")
    parts = [str(v) for v, one in zip(values, numbers, strict=True) if one.denominator > 1]
    # decimals may be rounded, and fractions are not
    room = 0 if all("/" in part for part in parts) else SUM_ATOL
    if parts and abs(total - 1) > room:
        raise MechanismError(
            f"the probabilities sum to {total if total.denominator < 10**9 else float(total)}: give "
            "probabilities that sum to one, or whole numbers as counts"
        )
    # fractions are compared and divided slowly, and few are different
    shares_of = {number: number / total for number in sorted(set(numbers)) if number}
    ranks = {number: rank for rank, number in enumerate(shares_of)}
    ranked = sorted(zip(labels, numbers, strict=True), key=lambda pair: ranks.get(pair[1], 0))
    return TraceLeakage({label: shares_of[number] for label, number in ranked if number})


def leakage_of_inputs(tables: Mapping[Any, Numbers]) -> dict[Label, TraceLeakage]:
    """Compute what a deterministic program reveals for each public input that an attacker may choose.

    Args:
        tables: for each public input the counts of the traces, as `leakage_of_counts` takes them.

    Returns:
        The leakage for each public input, that with the largest level first: the worst input and the whole
        curve.

    Raises:
        MechanismError: there is no input, or the counts of one are not usable; the message names it.

    Examples:
        >>> found = leakage_of_inputs({k: {"below": k, "other": 8 - k} for k in (2, 1, 4)})
        >>> next(iter(found)), {k: program.compute_level("bits") for k, program in found.items()}
        (1, {1: 3.0, 2: 2.0, 4: 1.0})
    """
    if not isinstance(tables, Mapping) or not tables:
        raise MechanismError("give a mapping from each public input to the counts of its traces")
    found = {}
    for name, counts in tables.items():
        try:
            found[name] = leakage_of_counts(counts)
        except InputError as cause:
            raise MechanismError(f"the public input {name!r}: {cause}") from None
    return dict(sorted(found.items(), key=lambda pair: -pair[1].level))


def compute_log(ratio: Fraction, unit: Unit = "nats") -> float:
    """Compute the logarithm of a fraction of at least 1 with all digits of a float.

    Examples:
        >>> compute_log(Fraction(2**64), "bits"), compute_log(1 + Fraction(1, 2**60)) == 2.0**-60
        (64.0, True)
    """
    if unit not in get_args(Unit):
        raise InputError(f"the unit {unit!r} is not known: use 'nats' or 'bits'")
    if ratio < 2:
        # the difference of two logarithms would cancel
        return math.log1p(float(ratio - 1)) / (math.log(2) if unit == "bits" else 1)
    log = math.log2 if unit == "bits" else math.log
    return log(ratio.numerator) - log(ratio.denominator)


def exceeds_level(ratio: Fraction, epsilon: float, unit: Unit = "nats") -> bool:
    """Return whether the logarithm of a fraction is above a level, decided exactly.

    Examples:
        >>> exceeds_level(Fraction(4), 2, "bits"), exceeds_level(Fraction(5), 2, "bits")
        (False, True)
        >>> exceeds_level(Fraction(4), math.log(4))  # the float is below log 4
        True
    """
    level = read_fraction(epsilon, "epsilon", PrivacyError)
    if level > ratio.numerator.bit_length():
        return False
    if level == 0 or (unit == "bits" and level.denominator == 1):
        return bool(ratio > 2 ** int(level))
    # no other rational level is the logarithm of a rational, so a finite number of digits decides
    for digits in count(50, 50):
        with localcontext(Context(prec=digits)):
            scale = Decimal(2).ln() if unit == "bits" else Decimal(1)
            power = (scale * level.numerator / level.denominator).exp()
        gap = ratio / Fraction(power) - 1
        if abs(gap) > Fraction(10) ** (10 - digits):
            return gap > 0
    raise AssertionError


def read_fraction(
    value: Any, what: str, error: type[InputError] = MechanismError, below: float = math.inf
) -> Fraction:
    """Read a nonnegative number as an exact fraction.

    Examples:
        >>> read_fraction("1/3", "a count"), read_fraction(0.5, "a count"), read_fraction(2**64, "a count")
        (Fraction(1, 3), Fraction(1, 2), Fraction(18446744073709551616, 1))
    """
    try:
        # an exponent of many digits is a number that fills the memory
        if isinstance(value, bool | np.bool_) or re.search(r"[eE][+-]?\d{4}|^.{4001}", str(value)):
            raise TypeError
        number = Fraction(value.item() if isinstance(value, np.generic) else value)
    except (TypeError, ValueError, ArithmeticError):
        found = describe_value(value)
        raise error(f"{what} must be a number, such as 3, 0.25 or '1/3', not {found}") from None
    if not 0 <= number < below:
        ends = "of at least 0" if below == math.inf else f"in [0, {below:g})"
        raise error(f"{what} is {value}: give a number {ends}")
    return number
