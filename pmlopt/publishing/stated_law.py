"""The publicly stated letter shares of a release: rounded population counts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from pmlopt.core.arrays import IntArray, Label, make_label_key
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.data.secret import Secret
from pmlopt.errors import InputError
from pmlopt.model.privacy import Requirement
from pmlopt.model.uncertainty import L1Ball
from pmlopt.model.uncertainty.confidence import weissman_radius
from pmlopt.programs.result import Result


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


def round_counts(counts: IntArray, step: int) -> IntArray:
    """Round counts to a multiple of a step; positive ones at least to the step.

    Examples:
        >>> round_counts(np.array([0, 1, 14, 15, 126]), 10).tolist()
        [0, 10, 10, 20, 130]
    """
    rounded = (counts + step // 2) // step * step
    return np.where(counts > 0, np.maximum(rounded, step), 0)


def compute_max_changes(stated: IntArray, step: int) -> IntArray:
    """Compute the largest difference between each exact count and the stated one.

    Examples:
        >>> (
        ...     compute_max_changes(np.array([0, 10, 20]), 10).tolist(),
        ...     compute_max_changes(np.array([7]), 1).tolist(),
        ... )
        ([0, 9, 5], [0])
    """
    changes = np.where(
        stated > step, step // 2, step - 1
    )  # the least stated count may stand for one person
    return np.where(stated > 0, changes, 0)


def bound_share_distance(stated: IntArray, step: int, people: int) -> float:
    """Bound the total variation distance between stated and exact shares.

    With counts c of n people and stated ones s of sum S, `|c/n - s/S| <= |c - s|/n + s |1/n - 1/S|`, summed.

    Examples:
        >>> bound_share_distance(np.array([10, 20]), 10, 29), bound_share_distance(np.array([7, 3]), 1, 10)
        (0.25862068965517243, 0.0)
    """
    total = int(stated.sum())
    change = float(compute_max_changes(stated, step).sum()) + abs(total - people)
    return min(1.0, change / people / 2)


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


def build_stated_prior(counts: Mapping[Label, int], exact: bool = False) -> Prior:
    """Build the publicly stated prior of a column's counts.

    A mechanism that is designed for it keeps its level under the shares that are published, and its file
    holds no exact count. The rounded counts are no sample: nothing is promised over one.

    Args:
        counts: of people, by letter.
        exact: whether the counts themselves are stated.

    Examples:
        >>> build_stated_prior({"no": 143, "yes": 57}).counts
        (140, 60)
    """
    if exact:
        return Prior.from_counts(counts)
    numbers = np.array(list(counts.values()), dtype=np.int64)
    rounded = round_counts(numbers, choose_rounding_step(int(numbers.sum())))
    return Prior.from_weights(rounded.tolist(), list(counts))


def restate_prior(prior: Prior, exact: bool = False) -> Prior:
    """Replace an empirical prior by its publicly stated one.

    Its counts are rounded as those of a release are. A prior that is no sample stays as it is.

    Args:
        prior: that is known.
        exact: whether the exact counts are stated.

    Examples:
        >>> restate_prior(Prior.from_counts({"no": 143, "yes": 57})).counts
        (140, 60)
        >>> restate_prior(Prior([0.715, 0.285])).probabilities
        array([0.715, 0.285])
    """
    if exact or prior.samples is None:
        return prior
    counts = prior.counts
    if counts is None:  # the sample is known by its size only
        counts = tuple(np.rint(prior.pmf * prior.samples).astype(np.int64).clip(1).tolist())
    return build_stated_prior(dict(zip(prior.labels, counts, strict=True)))


def restate_secret(secret: Secret, exact: bool = False) -> Secret:
    """Replace an empirical joint law by its rounded one.

    Args:
        secret: with the joint law that is known.
        exact: whether the exact counts are stated.

    Examples:
        >>> restate_secret(Secret.from_counts([[143, 6], [0, 57]])).weights[0].tolist()
        [[140, 10], [0, 60]]
    """
    if exact or not secret.counted:
        return secret
    pairs = secret.weights[0].astype(np.int64)
    rounded = round_counts(pairs, choose_rounding_step(int(pairs.sum()))).astype(object)
    return Secret.from_fields(secret.name, secret.labels, secret.values, (rounded,))


def needs_sample(requirement: Requirement) -> bool:
    """Return whether a requirement has a set of priors or a secret with the exact counts of a sample."""
    return any(
        _has_sample(getattr(part, name, None))
        for part in requirement.list_parts()
        for name in ("over", "secret")
    )


def _has_sample(law: Any) -> bool:
    """Return whether a set or joint law comes from a sample."""
    if isinstance(law, Secret):
        return law.counted
    center = getattr(law, "center", None)
    stated = isinstance(center, Prior) and center.samples is None
    return getattr(center, "samples", None) is not None or (
        getattr(law, "delta", None) is not None and not stated
    )


def make_confidence_ball(
    prior: Prior, people: int, distance: float, step: int, delta: float
) -> L1Ball:
    """Build the confidence ball around a stated prior for a population's law.

    Args:
        prior: that is stated.
        people: the sample, which is taken to be as small as its rounded number allows.
        distance: a bound on the total variation distance of the stated shares from those of the sample.
        step: to which counts are rounded.
        delta: the probability over the sample.
    """
    samples = max(1, people // step * step)
    radius = weissman_radius(samples, prior.size, delta) + 2 * distance
    return L1Ball(prior, min(2.0, radius), delta)


def check_no_exact_prior(
    made: Mechanism | Result[Any],
    exact: Mapping[Label, int],
    stated: Mapping[Label, int],
    name: str,
) -> None:
    """Raise an error where a mechanism file would reveal exact population shares.

    Args:
        made: what is released through.
        exact: how many people have each letter.
        stated: the rounded counts.
        name: of the column.

    Raises:
        InputError: the result is about a prior with the shares of the exact counts, which are not stated.
    """
    prior = None if isinstance(made, Mechanism) else made.certificate.listed_prior
    if not isinstance(prior, Prior) or prior.size != len(exact):
        return
    known = dict(zip(map(make_label_key, prior.labels), prior.probabilities.tolist(), strict=True))
    if known.keys() != {make_label_key(label) for label in exact}:
        return

    def is_prior_of(counts: Mapping[Label, int]) -> bool:
        total = sum(counts.values())
        # Probabilities that differ by less are of the same counts: those of up to 10^8 people differ by more.
        return all(
            abs(known[make_label_key(label)] - count / total) < 1e-9
            for label, count in counts.items()
        )

    if is_prior_of(exact) and not is_prior_of(stated):
        raise InputError(
            f"the mechanism of {name} was designed for the exact shares of these people, and its file states "
            "them: design it for pmlopt.publishing.build_stated_prior(counts) (at the shell: give "
            "--epsilon and --utility in place of --mechanism), or publish exact counts: "
            "exact_counts=True (--exact-counts)"
        )
