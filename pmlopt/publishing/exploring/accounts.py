"""Explorations of cumulative leakage: two columns, a stream over time, or a ledger."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from pmlopt.core.display import format_nats, pluralize
from pmlopt.core.numbers.arrays import Label, check_integer, check_positive, join_words
from pmlopt.data.prior import Prior
from pmlopt.data.sampling.categorical import Seed, make_random_bits
from pmlopt.data.secret import Secret
from pmlopt.errors import InputError, PrivacyError
from pmlopt.measures.outcomes import OutcomeSummary
from pmlopt.model.privacy import PML
from pmlopt.model.utility import UtilityLike
from pmlopt.programs.designs import design
from pmlopt.programs.program import Program
from pmlopt.publishing.exploring.exploration import (
    CurvePoint,
    Exploration,
    ExploredCurve,
    ExploredPart,
)
from pmlopt.publishing.exploring.solved import (
    DEFAULT_HALF_WIDTH,
    ROUNDED_COUNTS,
    compute_facts,
    make_parts,
    solve_grid,
    warn_of_exact_counts,
)
from pmlopt.publishing.stated_law import build_stated_secret
from pmlopt.releases import Ledger, Stream
from pmlopt.releases.accounts.attributes import attribute_levels


def explore_columns(
    joint: Secret,
    utility: UtilityLike | tuple[UtilityLike, UtilityLike],
    *,
    total: float,
    count: int = 21,
    title: str = "",
    half_width: float = DEFAULT_HALF_WIDTH,
    exact_counts: bool = False,
) -> Exploration:
    """Build the exploration of splitting a total level over two released columns.

    At each split (e, total - e) the columns are designed for their PML, and what both releases together
    reveal
    is computed from the joint law: of both columns, and of each. Where the columns depend on one another,
    what is revealed of one is above its own level.

    Args:
        joint: the law of both columns; its secret is the first one.
        utility: of each column, or one for both.
        total: the sum of the two levels, in nats.
        count: how many splits, both ends included.
        title: of the page.
        half_width: of estimated frequencies, for which people are counted.
        exact_counts: state the exact counts of a sample; else the table of pairs is rounded.

    Raises:
        PrivacyError: the total is not positive.
        InputError: there are fewer than two splits, or the secret has several joint laws.

    Examples:
        >>> pair = Secret([[0.4, 0.1], [0.1, 0.4]])
        >>> seen = explore_columns(pair, "hamming", total=0.4, count=3)
        >>> together = seen.curves[0].points
        >>> [point.at for point in together], together[0].value <= 0.4
        ([0.0, 0.2, 0.4], True)
    """
    most = check_positive(total, "the total", PrivacyError)
    splits = check_integer(count, "the number of splits", InputError)
    if splits < 2 or len(joint.joint) > 1:
        raise InputError("give two splits or more, and one joint law of the two columns")
    counted = joint.counted
    joint = build_stated_secret(joint, exact_counts)
    utilities = utility if isinstance(utility, tuple) else (utility, utility)
    names = (joint.name, "the other column")
    priors = (Prior(joint.law, joint.values), joint.prior)
    levels = [most * k / (splits - 1) for k in range(splits)]

    def design_column(side: int, epsilon: float) -> Program[Any]:
        return design(priors[side], PML(epsilon), utilities[side])

    solved = [solve_grid(design_column, {"side": [side], "epsilon": levels}) for side in (0, 1)]
    curves: dict[str, list[CurvePoint]] = {"both columns": [], names[0]: [], names[1]: []}
    for level, rest, *answers in zip(
        levels, levels[::-1], solved[0].results, solved[1].results[::-1], strict=True
    ):
        pair = [(name, one) for name, one in zip(names, answers, strict=True) if one is not None]
        if len(pair) < 2:
            continue
        found = attribute_levels(joint.joint[0], [one.mechanism for _, one in pair])
        told = dict(zip(curves, (found.together, *found.each), strict=True))
        facts = [("levels of the designs", f"{format_nats(level)} and {format_nats(rest)}")]
        facts += [(f"revealed of {name}", format_nats(amount)) for name, amount in told.items()]
        facts += [("outcomes that reveal most of both", join_words(found.outcome))]
        facts += [
            (f"utility of {name}", f"{one.value:.6g} (gap {one.gap:.1e})") for name, one in pair
        ]
        facts += [
            (f"{name}: {what}", text)
            for name, one in pair
            for what, text in compute_facts(one, half_width)[1:]
        ]
        parts = tuple(part for name, one in pair for part in make_parts(one, name))
        python = f"first, second = pmlopt.PML({level!r}), pmlopt.PML({rest!r})\n{_DESIGNED}"
        for name, amount in told.items():
            curves[name].append(
                CurvePoint(
                    level, amount, status="measured", facts=tuple(facts), parts=parts, python=python
                )
            )
    drawn = [
        ExploredCurve(name, tuple(own), f"What both releases reveal of {name}.")
        for name, own in curves.items()
    ]
    return Exploration(
        title or f"Explore two columns within {most:g} nats",
        f"level of {names[0]} [nats]",
        "revealed by both releases [nats]",
        tuple(drawn),
        about=(
            f"Of {most:g} nats, {names[0]} has the amount on the axis, and {names[1]} the rest.",
            *([ROUNDED_COUNTS] if counted and not exact_counts else []),
        ),
        warnings=warn_of_exact_counts(joint.prior),
        failures=(*solved[0].describe_failures, *solved[1].describe_failures),
        before_python="import pmlopt\n\njoint, utility = ...  # what was explored",
    )


_DESIGNED = """\
one = pmlopt.solve(pmlopt.design(pmlopt.Prior(joint.law, joint.values), first, utility))
other = pmlopt.solve(pmlopt.design(joint.prior, second, utility))"""


def explore_stream(
    stream: Stream, states: Iterable[Label] = (), *, seed: Seed = None, title: str = ""
) -> Exploration:
    """Build the exploration of a stream: past leakage, and candidate next releases.

    Releases are drawn along the given states, in a copy: the stream stays as it is. Each is designed and
    certified under what the ones before it revealed.

    Args:
        stream: with or without releases.
        states: of which one after another is released; each must be possible when it comes.
        seed: of the draws.
        title: of the page.

    Raises:
        InputError: there is neither a release nor a state.
        MechanismError: a state cannot be after the outputs before it.

    Examples:
        >>> from pmlopt import Chain
        >>> chain = Chain([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], ["home", "out"])
        >>> seen = explore_stream(Stream(chain, PML(0.4), "hamming"), ["home", "home"], seed=1)
        >>> [point.at for point in seen.curves[0].points], seen.limit
        ([1.0, 2.0], 0.4)
    """
    at = stream.copy()
    bits = make_random_bits(seed)
    points = [
        CurvePoint(float(time), level, status="released")
        for time, level in enumerate(stream.levels, 1)
    ]
    for state in states:
        result = at.solve()
        cap = at.cap
        law = at.law
        output = at.release(state, bits)
        time, level = max(at.worst_levels.items(), key=lambda pair: pair[1])
        facts = [
            ("what was drawn", join_words([output])),
            ("level up to which this release may go", format_nats(cap)),
            ("expected utility of this release", f"{result.value:.6g} (gap {result.gap:.1e})"),
        ]
        if stream.about != "path":
            facts.append(("most is revealed of the state at time", f"{time}: {format_nats(level)}"))
        parts = (ExploredPart.from_mechanism("", result.mechanism, law),)
        place = float(len(at.levels))
        points.append(CurvePoint(place, at.level, status="drawn", facts=tuple(facts), parts=parts))
    if not points:
        raise InputError("the stream has no release: give states along which to draw some")
    about = {"state": "one state, past, present or future", "path": "all states together"}
    what = about.get(str(stream.about), f"{stream.about} states in a row")
    return Exploration(
        title or "Explore a stream over time", "time", "revealed so far [nats]",
        (ExploredCurve("revealed so far", tuple(points), f"What the outputs so far reveal of {what}."),),
        about=(
            f"No sequence of outputs reveals more than {stream.privacy.epsilon:g} nats of {what}.",
            "At each time the prior is the posterior of the earlier outputs; outcomes reveal what they add.",
        ),
        limit=float(stream.privacy.epsilon),
    )  # fmt: skip


def explore_ledger(ledger: Ledger, *, title: str = "") -> Exploration:
    """Build the exploration of a ledger: leakage, remaining budget and posterior by person.

    People with the same history share a point; those of whom most was revealed come first.

    Examples:
        >>> ledger = Ledger([0.5, 0.5], people=3, total=1.0)
        >>> ledger.record([[0.75, 0.25], [0.25, 0.75]], [0, 1, 0])
        >>> seen = explore_ledger(ledger)
        >>> [round(math.exp(point.value), 12) for point in seen.curves[0].points]
        [1.5, 1.5]
    """
    groups = sorted(ledger.groups(), key=lambda group: -ledger.levels[group[0]])
    points = []
    # Histories of a ledger that a page shows: those of which most is revealed.
    for place, group in enumerate(groups[:60], 1):
        person = int(group[0])
        level = float(ledger.levels[group[0]])
        facts = [("people with this history", f"{len(group)}: {join_words(group.tolist())}")]
        if ledger.total is not None:
            left = ledger.remaining(person=person)
            facts.append(("left of the total", format_nats(max(0.0, ledger.total - level))))
            for letter, rest in zip(ledger.initial.labels, left.tolist(), strict=True):
                amount = "excluded" if math.isinf(rest) else format_nats(max(0.0, rest))
                facts.append((f"left for {join_words([letter])}", amount))
        left_to = (
            f"pmlopt.design(ledger.prior({person}), ledger.requirement(person={person}), utility)"
        )
        python = "" if ledger.total is None else f"result = pmlopt.solve({left_to})"
        parts = (_make_history_outcome(ledger, person),)
        known = tuple(facts)
        points.append(
            CurvePoint(
                float(place), level, status="recorded", facts=known, parts=parts, python=python
            )
        )
    about = [
        f"{pluralize(ledger.releases, 'release')} recorded of {pluralize(ledger.people, 'person', 'people')}."
    ]
    if more := len(groups) - len(points):
        about.append(
            f"Left out are {pluralize(more, 'history', 'histories')} of which less is revealed."
        )
    return Exploration(
        title or f"Explore a ledger of {pluralize(ledger.people, 'person', 'people')}",
        "history, by descending leakage",
        "revealed of the person [nats]",
        (ExploredCurve("revealed of the person", tuple(points)),),
        about=tuple(about),
        limit=ledger.total,
        warnings=warn_of_exact_counts(ledger.initial),
        before_python="import pmlopt\n\nledger, utility = ...  # a utility for what comes next",
    )


def _make_history_outcome(ledger: Ledger, person: int) -> ExploredPart:
    """Combine a person's releases to one outcome, by its likelihoods."""
    prior = ledger.initial
    density = ledger.density(person)
    likelihood = np.exp(density - density.max())
    after = prior.pmf * np.exp(density)
    x = int(density.argmax())
    excluded = tuple(prior.labels[k] for k in np.flatnonzero(np.isneginf(density)))
    share = (
        1.0 if len(excluded) == prior.size - 1 else min(float(after[x]), math.nextafter(1.0, 0.0))
    )
    outcome = "all releases"
    probability = float(prior.pmf @ likelihood)
    tells = OutcomeSummary(
        outcome, probability, prior.labels[x], float(prior.pmf[x]), share, excluded
    )
    return ExploredPart(
        "", prior.labels, (outcome,), likelihood[:, None], prior.pmf, (tells,), likelihood=True
    )
