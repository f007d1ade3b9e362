"""What the releaser learns of a release before it is published, and no file of the folder states."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from pmlopt.core.display import format_nats, format_row_share
from pmlopt.core.frames import MISSING_LETTER
from pmlopt.core.numbers.arrays import Label, join_words
from pmlopt.data.labelled import LabelledArray
from pmlopt.data.mechanism import Mechanism
from pmlopt.model.utility import ExpectedLoss
from pmlopt.programs.column_designs import compute_column_law
from pmlopt.programs.reports.column_losses import split_by_column
from pmlopt.programs.reports.pages import ReportSection
from pmlopt.publishing.folder import ReleaseFile, compute_joint_levels
from pmlopt.publishing.releasing import ReleaseDraft
from pmlopt.releases.accounts.attributes import compute_marginal
from pmlopt.releases.accounts.column_groups import split_evenly
from pmlopt.tables.writing import describe_other_ending


def compute_exact_level(draft: ReleaseDraft) -> float:
    """Compute the joint level of a release in nats under the exact shares of its data.

    The folder states the level under the shares that it states, which are rounded or those of a law. Whoever
    knows the exact ones may learn as much as this.

    Examples:
        >>> import math
        >>> from pmlopt import Mechanism
        >>> from pmlopt.publishing import release
        >>> response = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])
        >>> draft = release({"ill": ["yes"] * 52 + ["no"] * 148}, {"ill": response})
        >>> levels = draft.levels.together, compute_exact_level(draft)
        >>> [round(math.exp(level), 9) for level in levels]  # 0.75 / 0.375, and 0.75 / 0.38
        [2.0, 1.973684211]
    """
    mechanisms = [one.mechanism for one in draft.releases]
    return compute_joint_levels(draft.counted.people, mechanisms).together


def build_releaser_notes(draft: ReleaseDraft, is_dry_run: bool = True) -> ReportSection:
    """Build the section that is printed for the releaser only: exact figures, and what to do about them.

    Before rows are drawn, that is: afterwards another epsilon would mean a second release of the same people.
    """
    lines = list(_list_notes(draft, is_dry_run))
    return ReportSection("For you alone: what the folder does not state", lines)


def _list_notes(draft: ReleaseDraft, is_dry_run: bool) -> Iterator[str]:
    """Yield the lines on the exact level, the stated shares, and missing cells."""
    planned = draft.planned
    counted = draft.counted
    kept = int(counted.people.sum())
    if other := describe_other_ending(draft.data):
        yield other
    if counted.left_out:
        share = format_row_share(counted.left_out, kept + counted.left_out)
        yield f"{share} have a missing cell and are left out."
    if empty := count_empty_rows(draft):
        share = format_row_share(empty, kept)
        yield f"{share} have a missing or empty cell, which counts as the value {MISSING_LETTER!r}."
    yield from _advise_on_clear_columns(planned)
    if planned.step > 1 or not planned.same_people:
        stated = f"in multiples of {planned.step}" if planned.same_people else "of the law"
        exact = compute_exact_level(draft)
        yield (
            f"Under the exact shares of the file the level is {format_nats(exact)}: the "
            f"{format_nats(planned.together)} above are for the shares {stated}."
            + _advise_on_epsilon(draft, exact, is_dry_run)
        )
    yield from _compare_with_columns_apart(draft)
    if planned.same_people:
        yield (
            "To publish no shares of these people, give other data with the same columns: --law FILE, in a "
            'plan law = "FILE". Recipients can then not test the rows.'
        )


def _advise_on_clear_columns(planned: ReleaseFile) -> Iterator[str]:
    """Yield what to do about each column in clear, or about all together, that raises the level."""
    # levels in clear are rounded up to steps of 0.05 nats, and a little is in every column of a sample
    raising = [
        one
        for one in planned.in_clear
        if one.with_release is None or one.with_release > planned.together + 0.1
    ]
    for one in [one for one in raising if len(one.columns) == 1] or raising:
        names = join_words(one.columns)
        several = len(one.columns) > 1
        level = (
            "more than can be listed" if one.with_release is None else format_nats(one.with_release)
        )
        yield (
            f"{names} in clear ({one.values} {'combinations' if several else 'values'}) "
            f"{'raise' if several else 'raises'} the level from {format_nats(planned.together)} to {level}: "
            "keep coarser values, such as rounded numbers or weights in a few classes, or leave the column "
            "out."
        )


def _compare_with_columns_apart(draft: ReleaseDraft) -> Iterator[str]:
    """Yield what a mechanism for each column would lose, where one on their tuples is released."""
    made = draft.made[0]
    total = draft.planned.total
    tables = () if isinstance(made, Mechanism) else split_by_column(made.certificate)
    if len(draft.made) > 1 or not tables or total is None or isinstance(made, Mechanism):
        return
    prior = made.certificate.prior
    if prior.size > 200:  # designs apart take some seconds there
        return
    names = draft.releases[0].columns
    utilities = {
        name: ExpectedLoss(
            LabelledArray(one.losses, (one.letters, one.outputs), f"the loss of {name}")
        )
        for name, one in zip(names, tables, strict=True)
    }
    apart = split_evenly(prior, total, utilities, dict.fromkeys(names, 1.0))
    together = sum(one.loss for one in tables)
    nothing = sum(one.nothing for one in tables)
    each = []
    for place, (one, mechanism) in enumerate(zip(tables, apart.mechanisms, strict=True)):
        law = compute_column_law(prior, place).pmf  # of the letters in the order of the mechanism's
        rows = [one.letters.index(label) for label in mechanism.inputs]
        columns = [one.outputs.index(label) for label in mechanism.outputs]
        lost = law @ (mechanism.matrix * one.losses[np.ix_(rows, columns)]).sum(axis=1)
        each.append(f"{names[place]} {lost / (one.nothing or 1.0):.3g}")
    yield (
        "With a mechanism for each column apart, all at the largest epsilon that keeps "
        f"{format_nats(total)}, the loss would be {apart.value:.4g} in place of {together:.4g} (releasing "
        f"nothing {nothing:.4g}); as a share of the loss of releasing nothing: {join_words(each, 20)}."
    )


def _advise_on_epsilon(draft: ReleaseDraft, exact: float, is_dry_run: bool) -> str:
    """Return which epsilon keeps the claimed level under the exact shares, too; empty where it is kept."""
    claimed = draft.planned.together
    if not claimed < exact:
        return ""
    if not is_dry_run:
        return " A dry run says which epsilon keeps a limit for who knows them; a second draw reveals more."
    # A level moves about as much as epsilon does: a fifth more, and up to a hundredth for the kinks where it
    # becomes that of another outcome. One about rare letters, whose stated share is a multiple of the exact
    # one, falls more slowly.
    excess = exact - claimed
    less = claimed * (claimed / exact) ** 2
    if exact < 1.1 * claimed:
        less = claimed - 1.2 * excess - min(excess, claimed / 100)
    if len(draft.releases) > 1:
        advice = f"multiply each epsilon of the plan by {_round_down(less / claimed)}"
    elif draft.planned.total is not None and claimed >= draft.planned.total * (1 - 1e-9):
        advice = f"take a total of {_round_down(less)}"
    else:
        advice = f"take --epsilon {_round_down(less)}"
    found = (
        f" If your limit, also for somebody who knows the exact shares, is {format_nats(exact)} or more, "
        f"nothing is to be done; if it is {format_nats(claimed)}, {advice}."
    )
    if rare := _list_rare_letters(draft):
        found += f" Or merge letters that fewer than {draft.planned.step} people have: {join_words(rare, 5)}."
    return found


def _round_down(number: float) -> str:
    """Format a positive number, rounded down to three digits."""
    unit = 10.0 ** (math.floor(math.log10(number)) - 2)
    return f"{math.floor(number / unit) * unit:.3g}"


def _list_rare_letters(draft: ReleaseDraft) -> list[str]:
    """List the letters of fewer people than a step, rarest first."""
    found = []
    for place, one in enumerate(draft.releases):
        counts = compute_marginal(draft.counted.people, place).tolist()
        names = f"{'+'.join(one.columns)} = " if len(draft.releases) > 1 else ""
        rare = zip(counts, one.mechanism.inputs, strict=True)
        found += [
            (count, f"{names}{label!r}") for count, label in rare if 0 < count < draft.planned.step
        ]
    return [text for _, text in sorted(found)]


def count_empty_rows(draft: ReleaseDraft) -> int:
    """Return the number of released rows with the letter of a missing cell."""
    people = draft.counted.people
    for axis, release in enumerate(draft.releases):
        full = [not _has_missing_cell(label) for label in release.mechanism.inputs]
        people = people.compress(full, axis=axis)
    return int(draft.counted.people.sum() - np.sum(people))


def _has_missing_cell(label: Label) -> bool:
    """Return whether a label is, or has as a part, the letter of a missing cell."""
    parts = label if isinstance(label, tuple) else (label,)
    return any(isinstance(part, str) and part == MISSING_LETTER for part in parts)
