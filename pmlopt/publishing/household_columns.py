"""The households of the data of a release, with rounded counts, and the level about a member."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pmlopt.core.frames import MISSING_LETTER, Missing
from pmlopt.core.numbers.arrays import FloatArray, IntArray, Label, Labels, indices_of
from pmlopt.errors import InputError
from pmlopt.publishing.rounded_counts import choose_rounding_step, round_counts, round_level_up
from pmlopt.releases.accounts.households import (
    Household,
    HouseholdLaw,
    compute_law_level,
    group_members,
)
from pmlopt.releases.accounts.joint import multiply_rows
from pmlopt.releases.rows.batches import ColumnRelease
from pmlopt.tables.counting import count_tuples
from pmlopt.tables.reading import open_table
from pmlopt.tables.streams import CsvFormat


@dataclass(frozen=True, eq=False)
class StatedHouseholds:
    """The households of a file, with counts that are rounded as those of letters.

    Attributes:
        columns: of the rows.
        rows: the distinct tuples of values, to which the places in the law refer.
        law: the households by size.
    """

    columns: tuple[str, ...]
    rows: tuple[Labels, ...]
    law: HouseholdLaw

    def measure(self, releases: Sequence[ColumnRelease]) -> float:
        """Compute the level about a member of a release, rounded up to steps of 0.05 nats.

        Args:
            releases: mechanisms of all the columns.

        Raises:
            InputError: a household has no level below infinity.
        """
        parts = []
        for one in releases:
            places = [self.columns.index(name) for name in one.columns]
            labels: list[Label] = [
                row[places[0]] if len(places) == 1 else tuple(row[k] for k in places)
                for row in self.rows
            ]
            where = f"the values of {' and '.join(one.columns)}"
            known = indices_of(labels, one.mechanism.inputs, where, InputError, text=True)
            occurs = one.mechanism.matrix.any(axis=0)
            parts.append(one.mechanism.matrix[known][:, occurs])
        level = self.compute_level(multiply_rows(parts))
        if math.isinf(level):
            raise InputError(
                f"households of {self.law.pooled} rows are few, so that their members may depend on each "
                "other in any way, and a mechanism that rules values out has no level for them: leave those "
                "rows out, or design under local differential privacy"
            )
        return level

    def compute_level(self, matrix: FloatArray) -> float:
        """Compute the level about a member under the (N, M) mechanism of the rows, rounded up."""
        return round_level_up(compute_law_level(self.law, matrix))


def count_households(
    data: Any,
    household_column: str | None,
    columns: Sequence[str],
    missing: Missing = "refuse",
    form: CsvFormat | None = None,
    exact_counts: bool = False,
) -> StatedHouseholds | None:
    """Count the households of a file by the values of their members, and round the counts; None without.

    Sizes of fewer households than ten rounding steps have no law of their own: they are pooled.

    Raises:
        InputError: the column is one of those that are released, is not there, has a missing cell, or has a
            value with more than 100 rows.
    """
    if household_column is None:
        return None
    if household_column in columns:
        raise InputError(f"{household_column!r} names the households: it cannot be released, too")
    with open_table(data, form) as table:
        counted = count_tuples(table, [household_column, *columns], missing)
    if any(key[0] == MISSING_LETTER for key in counted):
        raise InputError(
            f"{household_column!r} has a missing cell: give each row a household, one of its own where it "
            "has no other"
        )
    rows = tuple(dict.fromkeys(key[1:] for key in counted))
    places = {row: place for place, row in enumerate(rows)}
    law = group_members((key[0], places[key[1:]], number) for key, number in counted.items())
    if exact_counts:
        return StatedHouseholds(tuple(columns), rows, law)
    stated: dict[int, Mapping[Household, int]] = {}
    pooled = 0
    for size, counts in law.counts.items():
        numbers: IntArray = np.array(list(counts.values()), dtype=np.int64)
        step = choose_rounding_step(int(numbers.sum()))
        if numbers.sum() < 10 * step:
            pooled = max(pooled, size)
            continue
        rounded = round_counts(numbers, step, list(counts))
        stated[size] = dict(zip(counts, rounded.tolist(), strict=True))
    return StatedHouseholds(tuple(columns), rows, HouseholdLaw(stated, pooled))
