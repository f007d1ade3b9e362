"""The counts of the letters of a release in its data, with those of the columns that stay in clear."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pmlopt.core.numbers.arrays import IntArray, Label
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.secret import Secret
from pmlopt.errors import InputError
from pmlopt.publishing.folder import ClearColumnLevels
from pmlopt.publishing.rounded_counts import round_level_up
from pmlopt.releases.accounts.attributes import level_in_clear, level_with_clear_column
from pmlopt.releases.accounts.joint import MAX_PRODUCT_ENTRIES, check_product_size, multiply_rows
from pmlopt.releases.rows.applying import encode_inputs
from pmlopt.releases.rows.batches import ColumnRelease
from pmlopt.tables.counting import count_pairs
from pmlopt.tables.digests import RowDigest
from pmlopt.tables.letter_tables import check_rows_are_people
from pmlopt.tables.reading import Table, TableBatch, find_column, open_table
from pmlopt.tables.streams import CsvFormat


class ClearColumnCounts:
    """Joint counts of clear columns and letter tuples.

    Args:
        table: whose rows are counted, batch by batch.
        names: of the columns.
    """

    def __init__(self, table: Table, names: Sequence[str]) -> None:
        groups = [(name,) for name in names] + ([tuple(names)] if len(names) > 1 else [])
        places = {name: find_column(table.names, name, table.where) for name in names}
        self._places = {group: [places[name] for name in group] for group in groups}
        self._counts: dict[tuple[str, ...], Counter[tuple[Label, Label]]] = {
            one: Counter() for one in groups
        }

    def add_batch(self, batch: TableBatch, letters: IntArray) -> None:
        """Count the rows of a batch by letter tuple and clear values."""
        for group, counts in self._counts.items():
            counts.update(count_pairs(batch, self._places[group], letters))

    def compute_levels(
        self, mechanisms: Sequence[Mechanism], published: IntArray | None = None
    ) -> tuple[ClearColumnLevels, ...]:
        """Compute the leakage of clear columns about letter tuples, before and after the release.

        Args:
            mechanisms: that release the letters.
            published: the rounded counts of the tuples of letters where the levels are published: then they
                are under these, and rounded up. None gives the exact levels.
        """
        shape = [len(one.inputs) for one in mechanisms]
        found = []
        outcomes = math.prod(len(one.outputs) for one in mechanisms)
        for names, counts in self._counts.items():
            joint = Secret.from_counts(counts)
            beside = None
            if published is not None:
                joint = _apply_stated_law(joint, published.ravel())
            rows = np.unravel_index(np.array(joint.labels, dtype=np.int64), shape)
            if len(joint.labels) * outcomes <= MAX_PRODUCT_ENTRIES:
                whole = multiply_rows(
                    [one.matrix[own] for own, one in zip(rows, mechanisms, strict=True)]
                )
                beside = level_with_clear_column(joint, Mechanism(whole, joint.labels))
            by_itself = level_in_clear(joint)
            if published is not None:
                by_itself = round_level_up(by_itself)
                beside = None if beside is None else round_level_up(beside)
            found.append(ClearColumnLevels(names, len(joint.values), by_itself, beside))
        return tuple(found)


def _apply_stated_law(joint: Secret, rounded: IntArray) -> Secret:
    """Replace the letter marginal of a joint law by the stated (rounded) shares.

    Args:
        joint: of the columns in clear, and of the places of the letters that occur.
        rounded: the stated number of people with the letters of each place.
    """
    stated = rounded[np.array(joint.labels, dtype=np.int64)]
    law = joint.joint[0]
    return Secret(law / law.sum(axis=0) * (stated / stated.sum()), joint.labels, joint.values)


@dataclass(frozen=True, eq=False)
class LetterCounts:
    """The exact counts of the people of a table, which no file of a release holds.

    Attributes:
        people: how many have each tuple of letters, an axis for each mechanism.
        left_out: rows that are left out for a missing cell.
        clear: the same counts by the values of the columns in clear.
        digest: of the rows.
    """

    people: IntArray
    left_out: int
    clear: ClearColumnCounts
    digest: str


def count_letters(
    data: Any,
    releases: Sequence[ColumnRelease],
    keep: Sequence[str],
    drop_missing: bool,
    form: CsvFormat | None,
    digested: Sequence[str] = (),
) -> LetterCounts:
    """Count letter tuples and clear values of a table, and digest its rows."""
    shape = [len(one.mechanism.inputs) for one in releases]
    check_product_size(math.prod(shape))
    people = np.zeros(math.prod(shape), dtype=np.int64)
    left_out = 0
    read: list[TableBatch] = []  # the first two batches: a table of letters fits into one
    with open_table(data, form) as table:
        clear = ClearColumnCounts(table, keep)
        rows = RowDigest(table, digested)
        for batch, codes in encode_inputs(table, releases, drop_missing, [*keep, *digested]):
            read = [*read, batch][:2]
            rows.add_batch(batch, codes)
            whole = np.logical_and.reduce([code >= 0 for code in codes])
            tuples = np.ravel_multi_index([np.maximum(code, 0) for code in codes], shape)
            people += np.bincount(tuples[whole], minlength=len(people))
            left_out += batch.size - int(whole.sum())
            clear.add_batch(batch, np.where(whole, tuples, -1))
        names = [name for one in releases for name in one.columns]
        check_rows_are_people(table, read, names, int(np.count_nonzero(people)))
    if not people.any():
        raise InputError("there is no row without a missing cell: nothing can be released")
    return LetterCounts(people.reshape(shape), left_out, clear, rows.compute_digest())
