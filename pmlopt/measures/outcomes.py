"""Summaries of each outcome: posterior probabilities, guesses and levels."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np

from pmlopt.core.display import format_facts_html, format_nats, format_table_html, pluralize
from pmlopt.core.numbers.arrays import (
    FloatArray,
    Label,
    Labels,
    check_integer,
    check_real,
    join_words,
)
from pmlopt.core.numbers.blocks import iterate_column_blocks
from pmlopt.data.mechanism import MechanismLike, as_mechanism, pair_with_prior
from pmlopt.data.prior import PriorLike, as_prior
from pmlopt.errors import PriorError, PrivacyError
from pmlopt.measures.leakage import ldp_level, lip_levels, maximal_leakage, mutual_information

MAX_SUMMARY_OUTCOMES = 3
"""The number of outcomes in a summary: those that leak most."""
OUTCOME_COLUMNS = ("outcome", "probability", "letter", "before", "after", "leakage")
"""The columns of `OutcomeSummary.table_row`."""


def _format_probability(probability: float) -> str:
    """Format a probability with four digits, never as 1 for less."""
    return "more than 0.9999" if 0.9999 < probability < 1 else f"{probability:.4g}"


def posterior(prior: PriorLike, mechanism: MechanismLike) -> FloatArray:
    """Compute the posterior of the letters given each outcome: `P(x | y) = p[x] P[x,y] / q[y]`.

    Args:
        prior: N letters.
        mechanism: (N, M).

    Returns:
        (N, M); a column of NaN for an output that never occurs.

    Examples:
        >>> posterior([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]]).tolist()
        [[0.75, 0.25], [0.25, 0.75]]
    """
    return as_mechanism(mechanism).posterior(prior)


@dataclass(frozen=True)
class OutcomeSummary:
    """The summary of what one outcome reveals about a letter.

    Attributes:
        output: the outcome.
        probability: of the outcome.
        letter: the letter whose probability it raises most, as a ratio.
        before, after: the probability of that letter under the prior, and given the outcome.
        excluded: the letters that it rules out.
        nearly_excludes: whether it does, or comes from a letter with less than a millionth of the probability
            with which it comes from another.
    """

    output: Label
    probability: float
    letter: Label
    before: float
    after: float
    excluded: Labels
    nearly_excludes: bool = False

    @property
    def leakage(self) -> float:
        """Return the pointwise maximal leakage `log(after / before)`, in nats."""
        return max(0.0, math.log(self.after / self.before))

    @property
    def identifies_letter(self) -> bool:
        """Return whether only one letter is possible given the outcome."""
        return self.after == 1.0 and self.before < 1.0

    def with_names(self, name: Callable[[Label], Label]) -> OutcomeSummary:
        """Return it with a name in place of each label.

        Examples:
            >>> summarize_outcomes([0.5, 0.5], [[1, 0], [0, 1]])[0].with_names("answer {}".format).output
            'answer 0'
        """
        excluded = tuple(map(name, self.excluded))
        return replace(self, output=name(self.output), letter=name(self.letter), excluded=excluded)

    @property
    def table_row(self) -> tuple[str, ...]:
        """Return the table row of the outcome."""
        after = "certain" if self.identifies_letter else _format_probability(self.after)
        cells = f"{self.probability:.4g}", join_words([self.letter]), f"{self.before:.4g}"
        return join_words([self.output]), *cells, after, format_nats(self.leakage)

    def __str__(self) -> str:
        """Return a sentence on the outcome.

        Examples:
            >>> print(summarize_outcomes([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])[0])
            If the output is 0, the true value is 0 with probability 0.75; before it was 0.5.
        """
        text = f"If the output is {join_words([self.output])}, the true value is {join_words([self.letter])} "
        text += (
            "with certainty"
            if self.identifies_letter
            else f"with probability {_format_probability(self.after)}"
        )
        text += f"; before it was {_format_probability(self.before)}."
        if self.excluded and not self.identifies_letter:
            text += f" It cannot be {join_words(self.excluded, word='or', rest='one of {} other values')}."
        return text


def summarize_outcomes(prior: PriorLike, mechanism: MechanismLike) -> list[OutcomeSummary]:
    """Summarize each possible outcome, by descending leakage; of equal ones to nine decimals, the likeliest
    first.

    The letter that is named is the one whose probability the outcome multiplies most, and of several the
    likeliest: `max_x P(x | y) / p[x]` is the exponential of the pointwise maximal leakage of the outcome
    [saeidian2023pointwise, Theorem 1].

    Args:
        prior: N letters.
        mechanism: (N, M).

    Examples:
        >>> worst = summarize_outcomes([0.4, 0.3, 0.3], [[1, 0], [0, 1], [0, 1]])[0]
        >>> worst.output, worst.letter, worst.before, worst.after, worst.identifies_letter, worst.excluded
        (0, 0, 0.4, 1.0, True, (1, 2))
    """
    p, m = pair_with_prior(prior, mechanism)
    law: FloatArray = p.pmf @ m.matrix
    outputs = m.output_names
    # the share of the largest entry of a column below which an entry as good as excludes its letter
    negligible = 1e-6
    found: list[OutcomeSummary] = []
    for part in iterate_column_blocks(m.matrix.shape):
        columns = m.matrix[:, part]
        peaks = columns.max(axis=0)
        # over the peaks, since the probability of an outcome may be below the floats
        joint = p.pmf[:, None] * (columns / np.where(peaks > 0, peaks, np.nan))
        laws = joint.sum(axis=0)
        turned = np.ascontiguousarray(columns.T)
        for place in np.flatnonzero(peaks > 0).tolist():
            y = part.start + place
            column = turned[place]
            peak = peaks[place]
            impossible = column <= 0
            raised = np.flatnonzero(column >= peak * (1 - 1e-12))
            x = int(raised[p.pmf[raised].argmax()])
            certain = np.count_nonzero(impossible) == p.size - 1
            after = float(joint[x, place] / laws[place])
            shown = 1.0 if certain else min(after, math.nextafter(1.0, 0.0))
            excluded = tuple(compress(p.labels, impossible.tolist())) if impossible.any() else ()
            letter = p.labels[x]
            before = float(p.pmf[x])
            nearly = bool(column.min() < negligible * peak)
            found.append(
                OutcomeSummary(outputs[y], float(law[y]), letter, before, shown, excluded, nearly)
            )
    # an optimal mechanism has many outcomes of one leakage, up to rounding: the likeliest matters most
    return sorted(found, key=lambda one: (-round(one.leakage, 9), -one.probability))


def epsilon_for(prior: PriorLike, largest_posterior: float) -> float:
    """Compute the epsilon of PML that bounds every posterior: `log(bound / max_x p[x])`.

    An outcome of a mechanism that satisfies epsilon-PML multiplies the probability of a letter by e^epsilon
    at most. No larger epsilon will do for all mechanisms where the bound is below one.

    Args:
        prior: N letters.
        largest_posterior: from the largest probability of the prior up to 1.

    Returns:
        The epsilon in nats, rounded down.

    Raises:
        PriorError: the bound is not above the largest probability of the prior, or above 1.

    Examples:
        >>> round(math.exp(epsilon_for([0.4, 0.3, 0.2, 0.1], 0.6)), 12)
        1.5
    """
    max_probability = float(as_prior(prior).pmf.max())
    if not max_probability <= largest_posterior <= 1:
        raise PriorError(
            f"the largest posterior is {largest_posterior!r}: give a number from {max_probability:.6g}, the "
            "prior probability of the likeliest letter, to 1"
        )
    return max(0.0, math.log(largest_posterior / max_probability) * (1 - 1e-15))


def list_outcome_warnings(summaries: Sequence[OutcomeSummary]) -> tuple[str, ...]:
    """List warnings on outcomes that identify or exclude letters.

    Examples:
        >>> print(list_outcome_warnings(summarize_outcomes([0.75, 0.25], [[0.5, 0.5], [0, 1]]))[0])
        Anyone who sees the output 0 (probability 0.375) knows with certainty that the true value is 0. PML
        with an epsilon below 0.287, which is -log of the probability of 0, rules this out.
    """
    if not summaries:
        return ()
    if len(summaries) == 1:
        only = join_words([summaries[0].output])
        return (
            f"Only the output {only} ever occurs: it reveals nothing. Another utility keeps more.",
        )
    # Leakage in nats up to which an outcome is stated to reveal nothing: rounding.
    if all(one.leakage < 1e-12 for one in summaries):
        return ("No outcome reveals anything: the released values do not depend on the true ones.",)
    certain, nearly, ruling = _sort_revealing(summaries)
    found = []
    if certain:
        likeliest = max(certain, key=lambda one: one.before)
        epsilon = _round_down(-math.log(likeliest.before))
        found.append(
            f"{_list_readers(certain, 'knows with certainty')} PML with an epsilon below {epsilon:g}, which "
            f"is -log of the probability of {join_words([likeliest.letter])}, rules this out."
        )
    if nearly:
        found.append(_list_readers(nearly, "is almost certain"))
    how = "never leads to it"
    if not all(one.excluded for one in ruling):  # such as entries of 1e-10 of an interior point
        how = "never leads to it, or a million times less often than another"
    if len(ruling) == len(summaries):
        found.append(
            f"Anyone who sees an output, whichever of the {len(summaries)}, can exclude at least one true "
            f"value, which {how}."
        )
    elif ruling:
        several = len(ruling) > 1
        found.append(
            f"Anyone who sees {'one of the outputs' if several else 'the output'} "
            f"{join_words((one.output for one in ruling), MAX_SUMMARY_OUTCOMES)} can exclude at least one "
            f"true value, which {how}."
        )
    return tuple(found)


def select_shown_outcomes(summaries: Sequence[OutcomeSummary]) -> list[OutcomeSummary]:
    """Select the outcomes of a table: those that leak most, and those that a warning names.

    Examples:
        >>> prior, mechanism = [0.96, 0.04], [[0.4, 0.1, 0.1, 0.2, 0.2], [0, 0.2, 0.2, 0.3, 0.3]]
        >>> [one.output for one in select_shown_outcomes(summarize_outcomes(prior, mechanism))]
        [1, 2, 3, 0]
    """
    certain, nearly, _ = _sort_revealing(summaries)
    named = {one.output for group in (certain, nearly) for one in group[:MAX_SUMMARY_OUTCOMES]}
    return [
        one
        for place, one in enumerate(summaries)
        if place < MAX_SUMMARY_OUTCOMES or one.output in named
    ]


def select_table_outcomes(summaries: Sequence[OutcomeSummary]) -> list[OutcomeSummary]:
    """Select the outcomes of a table: those of `select_shown_outcomes`, and the likeliest.

    Examples:
        >>> prior, mechanism = [0.5, 0.5], [[0.1, 0.1, 0.1, 0.3, 0.4], [0.0, 0.0, 0.0, 0.5, 0.5]]
        >>> [one.output for one in select_table_outcomes(summarize_outcomes(prior, mechanism))]
        [0, 1, 2, 3, 4]
    """
    shown = {one.output for one in select_shown_outcomes(summaries)}
    likeliest = sorted(summaries, key=lambda one: -one.probability)[:MAX_SUMMARY_OUTCOMES]
    shown |= {one.output for one in likeliest}
    return [one for one in summaries if one.output in shown]


def _sort_revealing(summaries: Sequence[OutcomeSummary]) -> tuple[list[OutcomeSummary], ...]:
    """Sort outcomes into those that prove a letter, nearly prove one, and exclude some."""
    almost_certain = 0.99  # a posterior that is called so
    return (
        [one for one in summaries if one.identifies_letter],
        [one for one in summaries if one.before < almost_certain < one.after < 1.0],
        [one for one in summaries if one.nearly_excludes and not one.identifies_letter],
    )


def _list_readers(outcomes: Sequence[OutcomeSummary], knows: str) -> str:
    """Describe in a sentence which letter the reader of each outcome infers."""
    first, *others = (
        (
            f"{join_words([one.output])} (probability {one.probability:.3g})",
            join_words([one.letter]),
        )
        for one in outcomes[:MAX_SUMMARY_OUTCOMES]
    )
    text = f"Anyone who sees the output {first[0]} {knows} that the true value is {first[1]}"
    text += "".join(f"; from the output {output}, that it is {letter}" for output, letter in others)
    left = len(outcomes) - MAX_SUMMARY_OUTCOMES
    return f"{text}; {pluralize(left, 'other output')} likewise." if left > 0 else f"{text}."


def _round_down(value: float) -> float:
    """Round a positive number down to three significant digits."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return math.floor(value / unit) * unit


@dataclass(frozen=True)
class Audit:
    """The levels and outcome summaries of a mechanism.

    Attributes:
        levels: in nats, by name: pml, ldp, lip_lower, lip_upper, maximal_leakage, mutual_information.
        outcomes: what each outcome reveals of the letter, those that leak most first.
    """

    levels: Mapping[str, float]
    outcomes: tuple[OutcomeSummary, ...]

    def __str__(self) -> str:
        """Return levels and most revealing outcomes as text."""
        return "\n".join([*self._format_levels(), *map(str, self.outcomes[:MAX_SUMMARY_OUTCOMES])])

    def __repr__(self) -> str:
        """Return the levels and the number of outcomes in a line."""
        counted = pluralize(len(self.outcomes), "outcome")
        return f"<Audit of {counted}: {', '.join(self._format_levels())}>"

    def _repr_html_(self) -> str:
        """Return the levels and the most revealing outcomes as a notebook shows them."""
        levels = {name: format_nats(level) for name, level in self.levels.items()}
        rows = [one.table_row for one in self.outcomes]
        return format_facts_html("Audit", levels) + format_table_html(
            "What each outcome reveals", OUTCOME_COLUMNS, rows
        )

    def _format_levels(self) -> list[str]:
        """Format each level with its name."""
        return [f"{name} {format_nats(level)}" for name, level in self.levels.items()]


def audit(prior: PriorLike, mechanism: MechanismLike) -> Audit:
    """Compute every level of a mechanism under a prior, and what its outcomes reveal.

    Args:
        prior: N letters.
        mechanism: (N, M).

    Examples:
        >>> found = audit([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])
        >>> {name: round(level, 6) for name, level in found.levels.items()}["ldp"]  # log 3
        1.098612
        >>> print(found.outcomes[0])
        If the output is 0, the true value is 0 with probability 0.75; before it was 0.5.
    """
    p, m = pair_with_prior(prior, mechanism)
    lower, upper = lip_levels(p, m)
    levels = {
        "pml": upper,
        "ldp": ldp_level(m),
        "lip_lower": lower,
        "lip_upper": upper,
        "maximal_leakage": maximal_leakage(m),
        "mutual_information": mutual_information(p, m),
    }
    return Audit(levels, tuple(summarize_outcomes(p, m)))


def guessing_probability(prior: PriorLike, mechanism: MechanismLike, guesses: int = 1) -> float:
    """Compute the success probability within k guesses after the outcome.

    `sum_y` of the k largest `p[x] P[x,y]`. `GuessLeakage` bounds the same for each outcome.

    Args:
        prior: N letters.
        mechanism: (N, M); a constant one for what is guessed before anything is released.
        guesses: k, at least 1.

    Raises:
        PrivacyError: k is no whole number of at least 1.

    Source: [alvim2012measuring], the posterior vulnerability for k tries.

    Examples:
        >>> prior = [0.4, 0.3, 0.2, 0.1]
        >>> [round(guessing_probability(prior, [[1, 0], [1, 0], [0, 1], [0, 1]], k), 12) for k in (1, 2, 3)]
        [0.6, 1.0, 1.0]
    """
    count = check_integer(guesses, "the number of guesses", PrivacyError)
    return math.fsum(_sort_joint(prior, mechanism)[:count].ravel())


def guesswork(prior: PriorLike, mechanism: MechanismLike, order: float = 1.0) -> float:
    """Compute the expected number of guesses until success, after the outcome.

    `sum_y sum_i i^order (the i-th largest p[x] P[x,y])`: the likeliest letter is guessed first.

    Args:
        prior: N letters.
        mechanism: (N, M); a constant one for the guesses before anything is released.
        order: of the moment of the number of guesses, above 0.

    Raises:
        PrivacyError: the order is not above 0, or not finite.

    Source: [massey1994guessing]; [arikan1996inequality] for moments and with an outcome.

    Examples:
        >>> prior = [0.4, 0.3, 0.2, 0.1]
        >>> nothing, half = [[1]] * 4, [[1, 0], [1, 0], [0, 1], [0, 1]]
        >>> round(guesswork(prior, nothing), 12), round(guesswork(prior, half), 12)
        (2.0, 1.4)
    """
    power = check_real(order, "the order of the moment", PrivacyError)
    if not 0 < power < math.inf:
        raise PrivacyError(f"the order of the moment is {power:g}: give a number above 0")
    ordered = _sort_joint(prior, mechanism)
    return math.fsum((np.arange(1, len(ordered) + 1)[:, None] ** power * ordered).ravel())


def _sort_joint(prior: PriorLike, mechanism: MechanismLike) -> FloatArray:
    """Return the (N, M) joint probabilities sorted in descending order by column."""
    p, m = pair_with_prior(prior, mechanism)
    return np.sort(p.pmf[:, None] * m.matrix, axis=0)[::-1]
