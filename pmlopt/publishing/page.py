"""The sections of a release report."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pmlopt.core.display import format_nats, pluralize
from pmlopt.core.numbers.arrays import FloatArray, IntArray, join_words
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.measures.estimable import MAX_RANKED_SIZE, estimable
from pmlopt.measures.outcomes import (
    OUTCOME_COLUMNS,
    list_outcome_warnings,
    select_table_outcomes,
    summarize_outcomes,
)
from pmlopt.programs.reports.column_losses import split_by_column
from pmlopt.programs.reports.pages import ReportSection, render_page
from pmlopt.programs.result import Result
from pmlopt.publishing.folder import (
    DESCRIPTION,
    IN_ORDER,
    NOT_COVERED,
    RANDOM_ORDER,
    SYSTEM,
    ReleaseFile,
    restrict_to_occurring,
)
from pmlopt.publishing.letter_names import make_namer
from pmlopt.publishing.signing import list_signature_lines, make_fact_table
from pmlopt.releases.accounts.attributes import apply_channels
from pmlopt.releases.estimation.comparisons import detectable_difference
from pmlopt.releases.estimation.people import half_width
from pmlopt.releases.estimation.tables import format_label


def build_sections(
    described: ReleaseFile, made: Sequence[Mechanism | Result[Any]]
) -> Iterator[ReportSection]:
    """Build the report sections on a release."""
    mechanisms = [one if isinstance(one, Mechanism) else one.mechanism for one in made]
    names = [" and ".join(part.columns) for part in described.parts]
    people = described.count_people(mechanisms)
    yield _describe_levels(described, names, made)
    for place, (name, mechanism) in enumerate(zip(names, mechanisms, strict=True)):
        law, occurring = restrict_to_occurring(people, place, mechanism)
        name_letter = make_namer(described.value_labels, described.parts[place].columns)
        tells = [one.with_names(name_letter) for one in summarize_outcomes(law, occurring)]
        lines = [str(tells[0])]
        warned = tuple[str, ...]()
        if (worth := getattr(made[place], "baselines", None)) is not None:
            lines.append(f"Its {worth}.")
        lines += _describe_column_losses(described.parts[place].columns, made[place])
        if max(mechanism.matrix.shape) <= MAX_RANKED_SIZE:  # where the rank is soon known
            found_of = estimable(mechanism)
            lines.append(f"From the released column can be estimated: {found_of}.")
            if found_of.rank == len(mechanism.inputs):
                lines.append(_describe_intervals(law, occurring, described.rows))
            warned = found_of.warnings
        rows = [one.table_row for one in select_table_outcomes(tells)]
        if len(rows) < len(tells):
            lines.append(
                f"Of {len(tells)} outcomes the table has those that reveal most, and the likeliest:"
            )
        yield ReportSection(f"What an outcome reveals of {name}", lines, OUTCOME_COLUMNS, rows)
        if found := (*list_outcome_warnings(tells), *warned):
            yield ReportSection("", found, kind="warning")
    if len(mechanisms) > 1 and (
        found := _warn_of_single_values(people, [one.matrix for one in mechanisms], names)
    ):
        yield ReportSection("", found, kind="warning")
    yield from _describe_clear_columns(described, int(people.sum()))
    if described.order == IN_ORDER:
        yield ReportSection("", [KEPT_ORDER], kind="warning")


def _describe_column_losses(columns: Sequence[str], made: Mechanism | Result[Any]) -> Iterator[str]:
    """Yield what each column loses of what releasing nothing would, where a loss is a sum over columns."""
    tables = () if isinstance(made, Mechanism) else split_by_column(made.certificate)
    lost = [one for one in zip(columns, tables, strict=False) if one[1].nothing > 0]
    if lost:
        shares = [f"{name} {table.loss / table.nothing:.3g}" for name, table in lost]
        yield f"Its loss as a share of the loss of releasing nothing: {join_words(shares, 20)}."
    if idle := [name for name, table in lost if table.loss >= (1 - 1e-6) * table.nothing]:
        yield (
            f"By this utility the release tells nothing of {join_words(idle)}: another utility, a weight "
            "or a limit for it, or a larger total keeps some of it."
        )


def _describe_intervals(prior: Prior, mechanism: Mechanism, rows: int) -> str:
    """Describe how near estimates of shares from a number of rows are to be, at the shares of a prior."""
    width = half_width(prior, mechanism, rows)
    held = (
        f"Each share can be estimated to within about {width:.2g}: all intervals hold at once with a "
        f"confidence of about 0.95, for a population of which these {rows:,} people are a sample."
    )
    if width >= 1:
        held = (
            f"From {pluralize(rows, 'row', 'rows')} the shares can be estimated in name only: to within "
            f"about {width:.2g}."
        )
    commonest = prior.labels[int(prior.pmf.argmax())]
    if prior.size < 2 or rows < 2:
        return held
    found = detectable_difference(prior, mechanism, commonest, rows)
    if found is None:
        return f"{held} No difference between two halves of them is found with a power of 0.8."
    return (
        f"{held} Between two halves of them, a share of '{format_label(commonest)}' of {found.second:.2g} in "
        f"place of {found.first:.2g}, an odds ratio of {found.odds_ratio:.2g}, is found with a power of 0.8."
    )


def _describe_levels(
    described: ReleaseFile, names: Sequence[str], made: Sequence[Mechanism | Result[Any]]
) -> ReportSection:
    """Describe the levels of a release, for whom they hold, and what is published of the shares."""
    promises = [
        "nothing: it has no certificate"
        if isinstance(one, Mechanism)
        else one.certificate.statement
        for one in made
    ]
    several = has_several_columns(described)
    level = format_nats(described.together)
    leak = "All released columns together leak" if several else "The released column leaks"
    lines = [
        f"{leak} at most {level} about one person's {join_words(names, 20)}: whatever is guessed of "
        f"{'them' if several else 'it'} becomes at most {format_factor(described.together)} times as "
        "likely."
    ]
    if described.kept:
        every = described.level_with_clear_columns
        most = "more than can be listed" if every is None else format_nats(every)
        lines[0] += f" Together with the columns that stay in clear, the level is {most}."
    if described.household_level is not None:
        lines[0] += (
            " All rows of a household together leak at most "
            f"{format_nats(described.household_level)} about one member, by the rounded counts of households "
            "in the data, rounded up to steps of 0.05 nats."
        )
    if described.total is not None:
        lines[0] += f" The total that was allowed is {format_nats(described.total)}."
    shares = "all combinations of values" if several else "its values"
    whose = (
        "the people in this file" if described.same_people else "other people, whose file was given"
    )
    lines += [
        f"This holds for an adversary who knows the shares of {shares} among {whose}, as {DESCRIPTION} "
        "states them, and nothing else about the person.",
        described.not_covered or NOT_COVERED,
        *describe_stated_counts(described),
    ]
    if len(names) == 1:  # a table would repeat one number
        return ReportSection(REVEALED, [*lines, f"Proved of the mechanism: {promises[0]}."])
    return ReportSection(
        REVEALED,
        lines,
        ("column", "alone", "with all others", "proved of the mechanism"),
        [
            (name, format_nats(part.alone), format_nats(part.with_all), promise)
            for name, part, promise in zip(names, described.parts, promises, strict=True)
        ],
    )


REVEALED = "What the release reveals"
"""The title of the section on the levels."""


def has_several_columns(described: ReleaseFile) -> bool:
    """Return whether more than one column is released."""
    return sum(len(part.columns) for part in described.parts) > 1


def _warn_of_single_values(
    people: IntArray, matrices: Sequence[FloatArray], names: Sequence[str]
) -> tuple[str, ...]:
    """Return warnings on joint outcomes that identify a value though no single outcome does."""
    possible = [(matrix > 0).astype(float) for matrix in matrices]
    occurs = (people > 0).astype(float)
    found = []
    if (apply_channels(occurs, possible) == 1).any() and occurs.sum() > 1:
        found.append("Some outcomes of all columns together leave a single combination of values.")
    for place, name in enumerate(names):
        others = [k for k in range(people.ndim) if k != place]
        beside = np.moveaxis(apply_channels(occurs, possible, others), place, 0)
        letters = (beside.reshape(len(beside), -1) > 0).astype(float)
        by_itself = (letters.max(axis=1) @ possible[place]) == 1
        if (letters.T @ possible[place] == 1).any() and not by_itself.any() and len(letters) > 1:
            found.append(f"Some outcomes of all columns together leave a single value of {name}.")
    return tuple(found)


def _describe_clear_columns(described: ReleaseFile, people: int) -> Iterator[ReportSection]:
    """Yield the sections on clear columns."""
    gone = [f"Not released: {join_words(described.dropped, 20)}."] if described.dropped else []
    if not described.kept:
        yield ReportSection("What stays in clear", ["No other column is released.", *gone])
        return
    several = len(described.kept) > 1
    yield ReportSection(
        "What stays in clear",
        [
            f"{pluralize(len(described.kept), 'column')} {'stay' if several else 'stays'} as in the data. "
            f"Anyone who sees {'them' if several else 'it'} learns this much of the released columns, by the "
            f"frequencies in the data{ROUNDED_UP if described.step > 1 else ''}:",
            *gone,
        ],
        ("in clear", "values", "without the release", "with the release"),
        [(" and ".join(one.columns), *one.table_row(format_nats)) for one in described.in_clear],
    )
    warned = [
        f"Every row has a unique value of {join_words(one.columns)}, which identifies one person."
        for one in described.in_clear
        if described.same_people and one.values == people > 1
    ]
    if warned:
        yield ReportSection("", warned, kind="warning")


ROUNDED_UP = " and the stated shares, rounded up to steps of 0.05 nats"


def describe_stated_counts(described: ReleaseFile) -> tuple[str, ...]:
    """Return sentences on the counts of people that a release states, and what they may reveal."""
    each = "combination of values" if has_several_columns(described) else "value"
    step = described.step
    people = "people" if described.same_people else "other people"
    how = f"how many {people} have each {each}"
    found = f"{DESCRIPTION} states {how}, {describe_rounding(step)}"
    if not described.same_people:
        return (f"{found}, and no count of these people.",)
    needless = f"{found}: recipients do not need the released rows for these shares."
    if step == 1:
        return (
            needless,
            "Two such releases whose rows differ by one person reveal the values of that person.",
        )
    return (
        needless,
        "If these rows are released again with one person more or fewer (a file of new rows is no such "
        f"release), the two releases show that person's value with a probability of about 1 in {step}, to "
        "whoever has both and knows that nothing else changed. The same --law FILE for both prevents it.",
    )


def describe_rounding(step: int) -> str:
    """Return how stated counts of people are rounded (`round_counts`), as words.

    Examples:
        >>> describe_rounding(10), describe_rounding(1)
        ('in multiples of 10, and at least 10', 'exactly')
    """
    return "exactly" if step == 1 else f"in multiples of {step}, and at least {step}"


def format_factor(level: float) -> str:
    """Format the likelihood-ratio factor of a level."""
    return f"{math.exp(min(level, 700.0)):.4g}"


def render_pages(
    described: ReleaseFile, made: Sequence[Mechanism | Result[Any]]
) -> tuple[bytes, bytes]:
    """Render the report as HTML and Markdown, from description and mechanisms."""
    title = described.title or "Release of " + join_words(
        name for part in described.parts for name in part.columns
    )
    about = "About " if described.step > 1 else ""
    left = f" {about}{pluralize(described.left_out, 'row')} with a missing cell were left out."
    seed = "" if described.random == SYSTEM else " Anyone who guesses the seed can undo the noise."
    found = [
        make_fact_table(described),
        ReportSection("", [
            f"{described.rows:,} rows of {described.data}, drawn row by row; the random numbers came from "
            f"{described.random}.{seed}{left if described.left_out else ''}"
            f"{ORDER if described.order == RANDOM_ORDER else ''}"
        ]),
        *build_sections(described, made),
        ReportSection("What is not promised", NOT_PROMISED),
        ReportSection("Check it yourself", [
            "With pmlopt installed, `pmlopt check` and the name of this folder recheck every claim: the "
            "certificate of each mechanism, the levels above from the matrices and the shares in "
            f"{DESCRIPTION}, the digests of all files, this report, and whether the released file can have "
            "come from these mechanisms."
        ]),
        *list_signature_lines(described),
    ]  # fmt: skip
    return render_page(title, found, ".html"), render_page(title, found, ".md")


ORDER = " The rows are in a uniformly random order."
KEPT_ORDER = (
    "The rows keep the order of the data. Anyone who guesses what the data are sorted by, or who is in "
    "which row, learns from the position of a row what no level here includes: for data that are sorted by a "
    "released column, usually nearly all of it."
)
"""What is stated of the order of rows."""

NOT_PROMISED = (
    "Other releases about the same people: their leakage is not included here. Keep a ledger.",
    "What an adversary knows of one person in addition to the shares of the values.",
    "Rows of one person more than once, or of people who depend on each other: each row counts as a person.",
    "That the level holds for a population of which these people are a sample, unless the table says so.",
    "The stated shares themselves, which are published with the mechanisms as the law that the claims are "
    "about; nor the names of the values that occur.",
)
"""What no release promises."""
