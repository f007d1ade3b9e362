"""Mechanisms applied to the columns of a data file, row by row and batch by batch."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from pmlopt.core.arrays import BoolArray, IntArray, Label, few, label_key
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.sampling.categorical import RandomBits, RowSampler, random_bits
from pmlopt.data.tables.counting import tuples_of, with_letter
from pmlopt.data.tables.reading import Batch, Table, column_place
from pmlopt.data.tables.writing import OutputColumn, labelled, open_sink
from pmlopt.errors import InputError, MechanismError


@dataclass(frozen=True)
class ColumnRelease:
    """A mechanism for a column of a table, or for the tuple of several columns.

    Args:
        mechanism: its inputs are the values of the column, or tuples of the values of the columns. A cell of
            a CSV file is an input that reads the same; a missing cell is the input "", the empty text.
        columns: their names. Outputs that are tuples of as many parts take the places of the columns; others
            are one column in the place of the first, named with `+` between.
    """

    mechanism: Mechanism
    columns: tuple[str, ...]

    @property
    def released(self) -> list[tuple[str, list[Label]]]:
        """The names of the columns that are written, each with the labels of the outputs."""
        outputs = self.mechanism.outputs
        parts = [
            output for output in outputs if isinstance(output, tuple) and len(output) == len(self.columns)
        ]
        if len(self.columns) > 1 and len(parts) == len(outputs):
            return [(name, [part[k] for part in parts]) for k, name in enumerate(self.columns)]
        return [("+".join(self.columns), list(outputs))]


@dataclass
class Applied:
    """What became of a table.

    Attributes:
        rows: how many were written.
        dropped: how many were left out for a missing cell.
        kept: the names of the other columns, which stay in clear.
    """

    rows: int = 0
    dropped: int = 0
    kept: list[str] = field(default_factory=list)


def apply_columns(
    table: Table,
    releases: Sequence[ColumnRelease],
    target: str | os.PathLike[str],
    *,
    keep: Sequence[str] | None = None,
    drop_missing: bool = False,
    seed: int | None = None,
    watch: Callable[[Batch, Sequence[IntArray]], None] | None = None,
    released: Callable[[Batch, Sequence[IntArray]], None] | None = None,
) -> Applied:
    """Replace columns of a table by what mechanisms release of them, each row drawn by itself, exactly.

    Args:
        table: that is read.
        releases: mechanisms with their columns, none of which has two.
        target: the file to write, which is there when all rows are, or never.
        keep: the other columns that stay, in clear; None for all.
        drop_missing: leave out rows with a missing cell that is no input.
        seed: for a result that can be repeated, in tests; None draws from the operating system.
        watch: is called with each batch before it is written, and with (size,) the row of each mechanism's
            matrix for each of its rows, -1 where the row is left out.
        released: is called with each batch and the outputs that each mechanism drew, by their places,
            for the rows that are not left out.

    Raises:
        InputError: there is no such column, or two mechanisms are for one.
        MechanismError: a cell is no input of its mechanism.
        FileFormatError: the file cannot be written.
    """
    steps = [_Step(release, table, _bits(seed, k)) for k, release in enumerate(releases)]
    taken = [place for step in steps for place in step.places]
    if len(set(taken)) < len(taken):
        raise InputError("two mechanisms are for one column: a column is released once")
    others = [place for place in range(len(table.names)) if place not in taken]
    if keep is not None:
        stay = {column_place(table.names, name, table.where) for name in keep}
        others = [place for place in others if place in stay]
    plan = _layout(table, steps, others)
    applied = Applied(kept=[table.names[place] for place in others])
    with open_sink(target, [column for column, *_ in plan], table) as sink:
        for batch, codes in _coded(table, steps, drop_missing):
            kept = _all_known(codes)
            if watch is not None:
                watch(batch, codes)
            drawn = [step.drawn(code if kept is None else code[kept])
                     for step, code in zip(steps, codes, strict=True)]  # fmt: skip
            if released is not None:
                released(batch, drawn)
            sink.write([
                batch.column(column.place, kept) if column.place is not None
                else labelled(column, drawn[number], typed=sink.typed)
                for column, number in plan
            ])  # fmt: skip
            written = batch.size if kept is None else int(kept.sum())
            applied.rows += written
            applied.dropped += batch.size - written
    return applied


def input_codes(
    table: Table, releases: Sequence[ColumnRelease], drop_missing: bool = False
) -> Iterator[tuple[Batch, list[IntArray]]]:
    """Each batch of a table, with (size,) the row of each mechanism's matrix for each of its rows.

    Args:
        table: that is read.
        releases: mechanisms with their columns.
        drop_missing: whether a row with a missing cell that is no input has the place -1 in all columns.

    Raises:
        InputError: there is no such column.
        MechanismError: a cell is no input of its mechanism.
    """
    steps = [_Step(release, table, _bits(0, k)) for k, release in enumerate(releases)]
    yield from _coded(table, steps, drop_missing)


def _coded(
    table: Table, steps: Sequence[_Step], drop_missing: bool
) -> Iterator[tuple[Batch, list[IntArray]]]:
    """See `input_codes`; what is no input matters in rows that stay alone."""
    for batch in table.batches():
        codes = [step.codes(batch, drop_missing) for step in steps]
        left_out = np.logical_or.reduce([code == _LEFT_OUT for code in codes])
        for step, code in zip(steps, codes, strict=True):
            code[left_out] = _LEFT_OUT
            if (code == _UNKNOWN).any():
                step.refuse(batch, int((code == _UNKNOWN).argmax()), table)
        yield batch, codes


def _bits(seed: int | None, place: int) -> RandomBits:
    """Bits for each mechanism of its own, so that a seed draws the same from batches of any length."""
    return random_bits(seed if seed is None or place == 0 else [seed, place])


def _all_known(codes: Sequence[IntArray]) -> BoolArray | None:
    """The rows with no cell that is left out; None for all."""
    known = np.logical_and.reduce([code >= 0 for code in codes])
    return None if known.all() else known


def _layout(table: Table, steps: Sequence[_Step], others: Sequence[int]) -> list[tuple[OutputColumn, int]]:
    """The columns to write in their order, each with the number of its mechanism."""
    placed: list[tuple[int, OutputColumn, int]] = [
        (place, OutputColumn(table.names[place], place), -1) for place in others
    ]
    for number, step in enumerate(steps):
        for (name, labels), place in zip(step.release.released, step.places, strict=False):
            placed.append((place, OutputColumn(name, None, labels), number))
    return [(column, number) for _, column, number in sorted(placed, key=lambda entry: entry[0])]


class _Step:
    """One mechanism at work on its columns."""

    def __init__(self, release: ColumnRelease, table: Table, bits: RandomBits) -> None:
        self.release = release
        self.places = [column_place(table.names, column, table.where) for column in release.columns]
        self._bits = bits
        self._sampler = RowSampler(release.mechanism.matrix)
        self._known = _inputs(release, typed=table.typed)

    def codes(self, batch: Batch, drop_missing: bool) -> IntArray:
        """(size,) the row of the matrix for each row of a batch, or `_LEFT_OUT` or `_UNKNOWN`."""
        values, codes = tuples_of(batch, self.places)
        rows = np.array([self._row(value, drop_missing) for value in values], dtype=np.int64)
        return np.asarray(rows[codes])

    def refuse(self, batch: Batch, row: int, table: Table) -> NoReturn:
        """Raise for a row whose value is no input."""
        values, codes = tuples_of(batch, self.places)
        value = values[int(codes[row])]
        shown = with_letter(value)
        what = repr(shown[0] if len(shown) == 1 else shown)
        raise MechanismError(
            f"{table.where}: row {batch.first + row}: the value {what} is not an input of the mechanism, "
            f"whose inputs are {few(self.release.mechanism.inputs)}"
            + (": say --missing drop to leave such rows out" if None in value else "")
        )

    def _row(self, value: tuple[Any, ...], drop_missing: bool) -> int:
        filled = with_letter(value)
        row = self._known.get(label_key(filled))
        if row is None:
            row = self._known.get(tuple(map(str, filled)), _UNKNOWN)
        return _LEFT_OUT if row == _UNKNOWN and drop_missing and None in value else row

    def drawn(self, rows: IntArray) -> IntArray:
        """(n,) outputs by their places."""
        return self._sampler.draw(rows, self._bits)


_LEFT_OUT, _UNKNOWN = -1, -2


def _inputs(release: ColumnRelease, *, typed: bool) -> dict[Label, int]:
    """The rows of the matrix by the tuple of values, and of the texts of values where these tell them apart.

    Cells of a CSV file are text, and all inputs must then read differently.
    """
    inputs, count = release.mechanism.inputs, len(release.columns)
    tuples = [label if isinstance(label, tuple) and count > 1 else (label,) for label in inputs]
    odd = [label for label, parts in zip(inputs, tuples, strict=True) if len(parts) != count]
    if odd:
        raise MechanismError(
            f"the input {odd[0]!r} of the mechanism is no tuple of {count} values, for the columns "
            f"{release.columns}"
        )
    texts = [tuple(map(str, parts)) for parts in tuples]
    alike = len(set(texts)) < len(texts)
    if alike and not typed:
        raise MechanismError(
            f"two of the inputs {few(inputs)} read alike, and the cells of a CSV file are text"
        )
    by_text: dict[Label, int] = {} if alike else {parts: row for row, parts in enumerate(texts)}
    return {**by_text, **{label_key(parts): row for row, parts in enumerate(tuples)}}
