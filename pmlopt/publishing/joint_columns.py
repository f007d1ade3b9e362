"""The columns of a release designed together: a total is enough, and a utility for each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeAlias

import numpy as np

from pmlopt.core.frames import Missing
from pmlopt.core.numbers.arrays import Label, indices_of
from pmlopt.core.records.fields import Range
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.errors import InputError
from pmlopt.model.privacy import LDP, PML, Requirement
from pmlopt.model.utility import Utility
from pmlopt.programs.column_designs import MAX_TUPLES, joint_design, marginalize
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


def count_stated_rows(
    data: Any,
    columns: Sequence[str],
    missing: Missing = "refuse",
    form: CsvFormat | None = None,
    exact_counts: bool = False,
) -> dict[tuple[Label, ...], int]:
    """Count the tuples of values of columns, rounded as a release states them."""
    with open_table(data, form) as rows:
        people = count_tuples(rows, columns, missing)
    numbers = np.array(list(people.values()), dtype=np.int64)
    step = 1 if exact_counts else choose_rounding_step(int(numbers.sum()))
    rounded = round_counts(numbers, step, list(people))
    return dict(zip(people, rounded.tolist(), strict=True))


def design_columns(
    stated: Mapping[tuple[Label, ...], int],
    columns: Mapping[str, JointColumn],
    total: float,
    margins: Sequence[Sequence[str]] | None = None,
    groups: Sequence[Sequence[str]] | None = None,
    households: StatedHouseholds | None = None,
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
    if groups is None and prior.size <= MAX_TUPLES:
        if households is not None:
            return {
                names: _design_for_households(prior, inner, households, utilities, weights, limits)
            }
        program = joint_design(
            prior, inner, list(names) if margins is not None else utilities,
            weights=weights or None, limits=limits, margins=margins,
        )  # fmt: skip
        # beyond a thousand tuples the usual tolerance takes many times as long
        result = solve(program) if prior.size <= 1_000 else solve(program, tolerance=1e-3)
        return {names: result}
    if margins is not None or limits or households is not None:
        raise InputError(
            "margins, limits and households need one mechanism on the tuples of all columns, and groups are "
            f"given or the {prior.size:,} tuples are more than {MAX_TUPLES:,}: group rare values, or release "
            "fewer columns"
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
    utilities: Mapping[str, Any],
    weights: Mapping[str, float],
    limits: Mapping[str, float],
) -> Result[Any]:
    """Design one mechanism with the largest level of a row at which households are within the total."""
    places = indices_of(households.rows, prior.labels, "the rows of households", InputError)
    pooled = households.law.pooled

    def design_at(level: float) -> Result[Any]:
        requirement: Requirement = PML(max(level, 1e-9))  # a program has a level above 0
        if pooled:  # members of few households may depend on each other in any way
            requirement &= LDP(max(min(total / pooled, level), 1e-9))
        return solve(
            joint_design(prior, requirement, utilities, weights=weights or None, limits=limits)
        )

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
    inputs, outputs = (
        [label[0] for label in side] for side in (own.prior.labels, own.mechanism.outputs)
    )
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
