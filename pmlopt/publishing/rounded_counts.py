"""The rounding of population counts, so that a release states shares and no exact count."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

import numpy as np

from pmlopt.core.numbers.arrays import IntArray, Label, make_order_key


def choose_rounding_step(people: int) -> int:
    """Return the rounding step of population counts: 10, 20, 50, 100, ...

    It depends on the number of rows only, which every release shows.

    Examples:
        >>> [choose_rounding_step(people) for people in (200, 19_999, 20_000, 45_000, 1_000_000)]
        [10, 10, 20, 20, 1000]
    """
    # People: the smallest step to which counts are rounded.
    # Steps grow with a file: rounding changes a share by about one in so many at most, and by five people.
    most = max(10, people // 1_000)
    power = 10 ** (len(str(most)) - 1)
    return max(factor * int(power) for factor in (1, 2, 5) if factor * power <= most)


def round_total(people: int, letters: int, step: int) -> int:
    """Round a number of people down to a multiple of a step, with room for one step for each letter.

    Rounded counts sum to it, so that their sum shows nothing but the number of rows and of letters. Of many
    letters it is larger: half of the steps of all people, less one, are left beside the one of each letter,
    so that common letters stay common beside rare ones.

    Args:
        people: n, of all letters.
        letters: that occur.
        step: to a multiple of which counts are rounded.

    Examples:
        >>> round_total(45_009, 2, 20), round_total(45, 4, 10), round_total(45_009, 2, 1)
        (45000, 50, 45009)
    """
    steps = people // step
    return people if step == 1 else max(steps, letters + max(steps // 2 - 1, 0)) * step


def round_counts(counts: IntArray, step: int, labels: Sequence[Label]) -> IntArray:
    """Round counts to multiples of a step that sum to their rounded total (`round_total`).

    The steps of the total are apportioned by Webster's method (Sainte-Laguë): each letter that occurs has
    one, and each further step goes to the letter with the largest `c / (2 s + 1)`, with c people and s steps
    so far. Counts that are rounded one by one have a sum that depends on their last digits: together with
    the number of rows, which a release shows, it may leave a single possibility for them. These leave `step`
    values of each count possible at least, or all that n allows, where two letters or more occur.

    Args:
        counts: of people, an entry for each letter, in any shape.
        step: to a multiple of which they are rounded.
        labels: of the letters, in the order of the flattened counts. They decide where letters have the same
            claim to a step, so that the order of the letters does not.

    Examples:
        >>> round_counts(np.array([143, 57]), 10, ["no", "yes"]).tolist()
        [140, 60]
        >>> round_counts(np.array([14_810, 30_190]), 20, ["a", "b"]).tolist()
        [14820, 30180]
        >>> round_counts(np.array([0, 1, 14, 15, 126]), 10, list("abcde")).tolist()
        [0, 10, 10, 10, 120]
    """
    if step == 1:
        return counts.copy()
    people = counts.ravel()
    occurring = np.flatnonzero(people).tolist()
    steps = np.zeros(len(people), dtype=np.int64)
    steps[occurring] = 1
    left = round_total(int(people.sum()), len(occurring), step) // step - len(occurring)
    claims = [
        (-int(people[place]) / 3, make_order_key(labels[place]), place)
        for place in (occurring if left else ())
    ]
    heapq.heapify(claims)
    for _ in range(left):
        _, key, place = claims[0]
        steps[place] += 1
        claim = -int(people[place]) / (2 * int(steps[place]) + 1)
        heapq.heapreplace(claims, (claim, key, place))
    return (steps * step).reshape(counts.shape)


def bound_share_distance(stated: IntArray, step: int) -> float:
    """Bound the total variation distance between stated shares and those of the exact counts.

    Let the stated counts be s steps of m together. By Webster's method counts c that are stated so satisfy
    `c[a] / (s[a] + 1/2) <= c[b] / (s[b] - 1/2)` for all letters a and b, b of two steps or more. A set A of
    letters has thus a share of at most `h / (h + l)`, with h the sum of `s + 1/2` in A, and l that of
    `s - 1/2` over the letters of two steps or more outside. The distance is at most the largest
    `h / (h + l) - s(A) / m`.

    Args:
        stated: rounded counts, as of `round_counts`.
        step: to a multiple of which they are rounded; 1 for exact counts.

    Examples:
        >>> round(bound_share_distance(np.array([140, 60]), 10), 9)  # half a step of 200 people
        0.025
        >>> bound_share_distance(np.array([7, 3]), 1)
        0.0
    """
    if step == 1:
        return 0.0
    steps = np.sort(stated[stated > 0]) // step
    whole = int(steps.sum())
    large = steps[steps > 1]
    rare = len(steps) - len(large)
    if not len(large):
        return 1.0 - 1.0 / rare  # counts of one step show nothing but that a letter occurs
    taken = np.arange(len(large) + 1)
    smallest = np.concatenate([[0], np.cumsum(large)])
    found = 0.0
    for own in (smallest, smallest[-1] - smallest[::-1]):
        # For so many large letters, the sum h + l is the same whichever they are, and the difference is
        # linear in s(A): the smallest letters or the largest ones have the largest.
        both = smallest[-1] - len(large) / 2 + taken
        outside = both - own - taken / 2
        # The number of rare letters in A, each with an s + 1/2 of 3/2: the difference is concave in it.
        added = np.clip((np.sqrt(1.5 * whole * outside) - both) / 1.5, 0, rare)
        found = max(
            found, float(np.max(1 - outside / (both + 1.5 * added) - (own + added) / whole))
        )
    return min(1.0, found + 1e-12)  # by far more than the error of these floats


def bound_share_ratio(stated: IntArray, step: int, people: int) -> float:
    """Bound how many times as large a stated share is as the exact one, for all counts that are stated so.

    Let the stated counts be s steps of m together, of k letters. By Webster's method (see
    `bound_share_distance`) a letter of two steps or more has an exact share of at least
    `(s - 1/2) / (m + k/2 - 1)`; one of a step has a person at least.

    Args:
        stated: rounded counts, as of `round_counts`.
        step: to a multiple of which they are rounded; 1 for exact counts.
        people: how many there are.

    Examples:
        >>> round(bound_share_ratio(np.array([140, 50]), 10, 197), 9)  # (5/19) / (4.5/19)
        1.111111111
        >>> bound_share_ratio(np.array([7, 3]), 1, 10)
        1.0
    """
    if step == 1:
        return 1.0
    steps = stated[stated > 0] // step
    whole = int(steps.sum())
    letters = len(steps)
    if letters == 1:
        return 1.0
    least = np.where(steps > 1, (steps - 0.5) / (whole + letters / 2 - 1), 1 / people)
    return float((steps / whole / least).max()) * (1 + 1e-12)


def round_level_up(level: float) -> float:
    """Round a level up to a multiple of 0.05 nats.

    Examples:
        >>> round_level_up(0.7366), round_level_up(0.0), round_level_up(0.05)
        (0.75, 0.0, 0.05)
    """
    # Levels that are computed from the exact table of columns in clear are rounded up to so many steps a nat.
    level_steps_per_nat = 20
    if not math.isfinite(level):
        return level
    # twenty steps make one nat: the quotient is the float nearest to the multiple
    found = math.ceil(level * level_steps_per_nat) / level_steps_per_nat
    return max(found, level)
