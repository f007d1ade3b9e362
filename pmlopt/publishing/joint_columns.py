"""The columns of a release designed together: a total is enough, and a utility for each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeAlias

import numpy as np

from pmlopt.core.frames import Missing
from pmlopt.core.numbers.arrays import Label, Labels, abbreviate, indices_of, join_words
from pmlopt.core.records.fields import Range
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.errors import InputError
from pmlopt.model.privacy import LDP, PML, Requirement
from pmlopt.model.utility import Utility
from pmlopt.programs.column_designs import (
    MAX_TUPLES,
    About,
    find_column,
    joint_design,
    marginalize,
)
from pmlopt.programs.estimation.program import EstimationDesign
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.programs.result import Result
from pmlopt.programs.solving import certify, solve
from pmlopt.publishing.household_columns import StatedHouseholds
from pmlopt.publishing.rounded_counts import choose_rounding_step, round_counts
from pmlopt.releases.accounts.column_groups import find_largest_level, group_design
from pmlopt.tables.counting import count_tuples
from pmlopt.tables.reading import open_table
from pmlopt.tables.streams import CsvFormat

Designed: TypeAlias = dict[str | tuple[str, ...], Mechanism | Result[Any]]


@dataclass(frozen=True)
class JointColumn:
    """The plan of a column that is designed together with others.

    Attributes:
        utility: a name (absolute, hamming, balanced-match), or a gain or loss.
        weight: what a unit of its loss counts; left out, one over the loss of releasing nothing.
        limit: of the level about this column alone, in nats.
    """

    utility: Utility | str | None = None
    weight: float | None = None
    limit: Annotated[float, Range(0)] | None = None


@dataclass(frozen=True)
class RowLimit:
    """The plan of a limit about a function of the row: some columns, or the class of their values.

    Attributes:
        columns: of which the function is.
        limit: of the level about it, in nats.
        classes: lists of values of the columns, which are tuples of several columns: the function is the
            class that a row is in, and rows in none of them are one more; left out, it is the values.
    """

    columns: tuple[str, ...]
    limit: Annotated[float, Range(0)]
    classes: tuple[Labels, ...] | None = None

    def build_function(
        self, name: str, columns: Sequence[str], rows: Iterable[Labels]
    ) -> Callable[[Any], Label]:
        """Build the function of a row.

        Raises:
            ProgramError: one of its columns is not there, or there is none.
            InputError: a value of a class is in no row, or in two classes.
        """
        places = [find_column(one, columns, f"about.{name}.columns") for one in self.columns]
        if not places:
            raise InputError(f"about.{name}.columns is empty: name the columns of the function")

        def take_values(row: Any) -> Label:
            return row[places[0]] if len(places) == 1 else tuple(row[place] for place in places)

        if self.classes is None:
            return take_values
        known = list(dict.fromkeys(map(take_values, rows)))
        numbers: dict[Label, int] = {}
        for number, values in enumerate(self.classes):
            for value in values:
                if value not in known or value in numbers:
                    why = "stands in two of them" if value in numbers else "is in no row"
                    raise InputError(
                        f"about.{name}.classes: {value!r:.80} {why}: the values of "
                        f"{' and '.join(self.columns)} are {abbreviate(known)}"
                    )
                numbers[value] = number
        return lambda row: numbers.get(take_values(row), -1)


def plan_columns(
    columns: Mapping[str, Utility | str] | None,
    limits: Mapping[str, float] | None,
    about: About | None,
    total: float | None,
) -> dict[str, JointColumn]:
    """Return the plan of each column that is designed for a total; empty where there is none.

    Raises:
        InputError: there is no total, or a limit is of no such column.
    """
    if columns is None:
        if limits or about:
            raise InputError("limits and about are of columns that are designed: give columns, too")
        return {}
    if total is None:
        raise InputError("columns that are designed together need a total, such as total=1.0")
    if strange := (limits or {}).keys() - columns.keys():
        raise InputError(
            f"limits has {join_words(strange)}, and the columns are {join_words(columns)}: name one of these"
        )
    return {
        name: JointColumn(utility, limit=(limits or {}).get(name))
        for name, utility in columns.items()
    }


def count_stated_rows(
    data: Any,
    columns: Sequence[str],
    missing: Missing = "refuse",
    form: CsvFormat | None = None,
    exact_counts: bool = False,
) -> dict[Labels, int]:
    """Count the tuples of values of columns, rounded as a release states them."""
    with open_table(data, form) as rows:
        people = count_tuples(rows, columns, missing)
    numbers = np.array(list(people.values()), dtype=np.int64)
    step = 1 if exact_counts else choose_rounding_step(int(numbers.sum()))
    rounded = round_counts(numbers, step, list(people))
    return dict(zip(people, rounded.tolist(), strict=True))


def design_columns(
    stated: Mapping[Labels, int],
    columns: Mapping[str, JointColumn],
    total: float,
    margins: Sequence[Sequence[str]] | None = None,
    groups: Sequence[Sequence[str]] | None = None,
    households: StatedHouseholds | None = None,
    about: About | None = None,
) -> Designed:
    """Design the mechanisms of columns together: one on their tuples, or one for each group of columns.

    Args:
        stated: the number of people with each tuple of values, as it is published.
        columns: in the order of the tuples.
        total: the level of all of them together about the row, in nats.
        margins: groups of columns whose cross tables are to be estimated, in place of losses.
        groups: a partition of the columns; left out, one mechanism is on the tuples of all columns, up to
            4,000 of them, and else groups are chosen by dependence.
        households: what all rows of a household reveal about a member is within the total, too: the largest
            level of a row is searched for which that holds.
        about: the limits about functions of the row, as for `joint_design`.

    Raises:
        InputError: an option needs a design on the tuples of all columns, and these are too many.
        PmloptError: an argument cannot be meant.
        SolverError: a design cannot be solved.
    """
    names = tuple(columns)
    if len(names) < 2:
        raise InputError(
            "columns are designed together from two on: give epsilon or privacy for a single one"
        )
    # rounded counts are no sample: a prior with a sample size would promise too much
    prior = Prior.from_weights(list(stated.values()), list(stated))
    # a hair below: the level is computed again in floats, and compared with the total
    inner = total * (1 - 1e-12) if total > 0 else total
    utilities = {name: _get_utility(name, one, margins) for name, one in columns.items()}
    weights = {name: one.weight for name, one in columns.items() if one.weight is not None}
    limits = {name: one.limit for name, one in columns.items() if one.limit is not None}

    def build_program(privacy: float | Requirement) -> LinearDesign | EstimationDesign:
        return joint_design(
            prior, privacy, list(names) if margins is not None else utilities,
            weights=weights or None, limits=limits, about=about, margins=margins,
        )  # fmt: skip

    if groups is None and prior.size <= MAX_TUPLES:
        if households is not None:
            return {names: _design_for_households(prior, inner, households, build_program)}
        program = build_program(inner)
        # beyond a thousand tuples the usual tolerance takes many times as long
        result = solve(program) if prior.size <= 1_000 else solve(program, tolerance=1e-3)
        return {names: result}
    if margins is not None or limits or about or households is not None:
        instead = "leave the groups out"
        if prior.size > MAX_TUPLES:
            instead = (
                f"the {prior.size:,} tuples are more than {MAX_TUPLES:,}, so that groups are needed: group "
                "rare values, or release fewer columns"
            )
        asked = {
            "estimates of shares and cross tables": margins, "limits": limits, "about": about,
            "households": households,
        }  # fmt: skip
        raise InputError(
            f"{join_words(what for what, given in asked.items() if given)} need one mechanism on the tuples "
            f"of all columns, and not one for each group: {instead}"
        )
    found = group_design(prior, inner, utilities, groups, weights=weights)
    designed: Designed = {}
    for own, mechanism in zip(found.groups, found.mechanisms, strict=True):
        places = [names.index(name) for name in own]
        chosen = {name: utilities[name] for name in own}
        # with the law that it is for: a matrix without one might show the exact shares
        program = joint_design(
            marginalize(prior, places), inner, chosen,
            weights={name: weights[name] for name in own if name in weights} or None,
        )  # fmt: skip
        result = certify(program, mechanism.matrix)
        designed[own if len(own) > 1 else own[0]] = result if len(own) > 1 else _name_values(result)
    return designed


def _design_for_households(
    prior: Prior,
    total: float,
    households: StatedHouseholds,
    build_program: Callable[[float | Requirement], LinearDesign | EstimationDesign],
) -> Result[Any]:
    """Design one mechanism with the largest level of a row at which households are within the total."""
    places = indices_of(households.rows, prior.labels, "the rows of households", InputError)
    pooled = households.law.pooled

    def design_at(level: float) -> Result[Any]:
        requirement: Requirement = PML(max(level, 1e-9))  # a program has a level above 0
        if pooled:  # members of few households may depend on each other in any way
            requirement &= LDP(max(min(total / pooled, level), 1e-9))
        return solve(build_program(requirement))

    return find_largest_level(
        design_at,
        lambda found: households.compute_level(found.matrix[places]) <= total,
        total,
        steps=50 if prior.size <= 200 else 10,
    )


def _name_values(result: Result[Any]) -> Result[Any]:
    """Return the result for a single column, whose letters are values in place of tuples of one."""
    own = result.certificate
    prior = Prior.from_weights(own.prior.weights, [label[0] for label in own.prior.labels])
    inputs = [label[0] for label in own.prior.labels]
    outputs = [label[0] for label in own.mechanism.outputs]
    mechanism = Mechanism(own.mechanism.matrix, inputs, outputs)
    return replace(result, certificate=replace(own, prior=prior, mechanism=mechanism))


def _get_utility(name: str, column: JointColumn, margins: object) -> Utility | str | None:
    """Return the utility of a column, which margins replace."""
    if (column.utility is None) == (margins is None):
        raise InputError(
            f'give a utility for {name}, such as "absolute" or "hamming", or margins for all columns: one of '
            "the two"
        )
    return column.utility
