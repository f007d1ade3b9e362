"""Batched application of mechanisms to columns: each row drawn independently and exactly,
it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn, Self

import numpy as np

from pmlopt.core.frames import is_absent
from pmlopt.core.lazy_imports import pyarrow
from pmlopt.core.near_labels import describe_difference
from pmlopt.core.numbers.arrays import (
    BoolArray,
    IntArray,
    Label,
    Labels,
    abbreviate,
    make_label_key,
)
from pmlopt.data.mechanism import Mechanism, MechanismLike, as_mechanism
from pmlopt.data.sampling.categorical import KeyedBits, RandomBits, RowSampler, SystemBits, make_key
from pmlopt.errors import InputError, MechanismError
from pmlopt.tables.cells import gather_all_cells, gather_cells, get_plain_type
from pmlopt.tables.counting import find_tuples, replace_missing
from pmlopt.tables.reading import TableBatch, find_column, integers_to_arrow
from pmlopt.tables.typed_sinks import (
    Cells,
    OutputColumn,
    check_readable_labels,
    get_label_type,
)


@dataclass(frozen=True)
class ColumnRelease:
    """The assignment of a mechanism to a table column, or to a tuple of columns.

    Args:
        mechanism: its inputs are the values of the column, or tuples of the values of the columns. A cell of
            a CSV file is an input that reads the same; a missing cell is the input "", the empty text.
        columns: their names. Outputs that are tuples of as many parts take the places of the columns; others
            are one column in the place of the first, named with `+` between.
        level: of the mechanism in nats, for files that can state it; None for none.
    """

    mechanism: Mechanism
    columns: tuple[str, ...]
    level: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "mechanism", self.mechanism.with_named_outputs())

    @property
    def output_columns(self) -> list[tuple[str, list[Label]]]:
        """Return the names of the output columns with their labels."""
        outputs = self.mechanism.outputs
        parts = [
            output
            for output in outputs
            if isinstance(output, tuple) and len(output) == len(self.columns)
        ]
        if len(self.columns) > 1 and len(parts) == len(outputs):
            return [(name, [part[k] for part in parts]) for k, name in enumerate(self.columns)]
        return [("+".join(self.columns), list(outputs))]


class ColumnReleaser:
    """The mechanisms of a table's columns, applied batch by batch.

    Args:
        releases: mechanisms with their columns, none of which has two.
        names: of the columns of the table.
        where: the table, for messages.
        typed: whether its cells have types, or are text from a CSV file.
        keep: the other columns that stay, in clear; None for all.
        drop_missing: leave out rows with a missing cell that is no input.

    Attributes:
        columns: what is written, in order.

    Raises:
        InputError: there is no such column, or two mechanisms are for one.
    """

    def __init__(
        self,
        releases: Sequence[ColumnRelease],
        names: Sequence[str],
        where: object,
        *,
        typed: bool,
        keep: Sequence[str] | None = None,
        drop_missing: bool = False,
    ) -> None:
        self._steps = [
            _ColumnStep(release, names, where, typed, drop_missing) for release in releases
        ]
        taken = [place for step in self._steps for place in step.places]
        if len(set(taken)) < len(taken):
            raise InputError("two mechanisms are for one column: a column is released once")
        stay = {
            find_column(names, name, where) for name in (names if keep is None else keep)
        } - set(taken)
        self._plan = sorted(
            [
                *((place, OutputColumn(names[place], place), -1) for place in stay),
                *(
                    (place, OutputColumn(name, None, labels, step.release.level), number)
                    for number, step in enumerate(self._steps)
                    for (name, labels), place in zip(
                        step.release.output_columns, step.places, strict=False
                    )
                ),
            ],
            key=lambda entry: entry[0],
        )
        self.columns = [column for _, column, _ in self._plan]

    def encode_inputs(self, batch: TableBatch) -> list[IntArray]:
        """Encode each mechanism's inputs of a batch as (size,) row indices; -1 for dropped rows.

        Raises:
            MechanismError: a cell is no input of its mechanism, in a row that stays.
        """
        codes = [step.encode_batch(batch) for step in self._steps]
        if all(code.min(initial=0) >= 0 for code in codes):
            return codes
        left_out = np.logical_or.reduce([code == _LEFT_OUT for code in codes])
        for step, code in zip(self._steps, codes, strict=True):
            code[left_out] = _LEFT_OUT
            if (code == _UNKNOWN).any():
                step.refuse_row(batch, int((code == _UNKNOWN).argmax()))
        return codes

    def draw_outputs(
        self, codes: Sequence[IntArray], bits: Sequence[RandomBits]
    ) -> tuple[BoolArray | None, list[IntArray]]:
        """Draw the output indices of each mechanism, and return the mask of kept rows."""
        known = np.logical_and.reduce([code >= 0 for code in codes])
        kept = None if known.all() else known
        return kept, [
            step.sampler.draw_outputs(code if kept is None else code[kept], random)
            for step, code, random in zip(self._steps, codes, bits, strict=True)
        ]

    def make_cells(
        self, batch: TableBatch, kept: BoolArray | None, drawn: Sequence[IntArray]
    ) -> list[Cells]:
        """Assemble the output cells of a batch."""
        rows = None if kept is None else integers_to_arrow(np.flatnonzero(kept))
        return [
            drawn[number]
            if column.place is None
            else batch.get_column(column.place)
            if rows is None
            else gather_cells(batch.get_column(column.place), rows)
            for _, column, number in self._plan
        ]


@dataclass(frozen=True)
class BatchRelease:
    """A callable from record batches to released record batches, for data engines.

    What comes out holds its own cells and nothing else: categories become values, and the metadata stay
        behind.
    The rows keep their order, which may reveal what the data are sorted by: put all rows of a release into a
    random order before they are published, as `release` of Dask and Spark does.

    Each row is drawn independently. Without a key the draws come from the operating system, anew in each
    call. With one they are a function of the key, of the place that the engine gives to the batch and of the
    batch's letters: a task that is tried again draws what it drew before, so that no one can compare two
    draws of one row, and batches in different places share no draws. Who has the key and the release can
    reveal much of the secret: it is as secret as the data, and is to be forgotten with the task.

    Args:
        releases: mechanisms with their columns.
        keep: the other columns that stay, in clear; None for all.
        drop_missing: leave out rows with a missing cell that is no input.
        key: 32 bytes, as `make_key` makes them; None for the operating system.

    Examples:
        >>> import pyarrow
        >>> flip = Mechanism([[0.0, 1.0], [1.0, 0.0]], ["no", "yes"], ["no", "yes"])
        >>> batch = pyarrow.RecordBatch.from_pydict({"smokes": ["no", "yes"], "name": ["Ann", "Bo"]})
        >>> BatchRelease.of({"smokes": flip}, keep=[])(batch).to_pydict()
        {'smokes': ['yes', 'no']}
    """

    releases: tuple[ColumnRelease, ...]
    keep: tuple[str, ...] | None = None
    drop_missing: bool = False
    key: bytes | None = None

    @classmethod
    def of(
        cls,
        mechanisms: Mapping[str | tuple[str, ...], MechanismLike],
        *,
        keep: Sequence[str] | None = None,
        drop_missing: bool = False,
        key: bytes | None = None,
    ) -> Self:
        """Build it from mechanisms by column or tuple of columns."""
        releases = tuple(
            ColumnRelease(as_mechanism(made), columns if isinstance(columns, tuple) else (columns,))
            for columns, made in mechanisms.items()
        )
        return cls(releases, None if keep is None else tuple(keep), drop_missing, key)

    @classmethod
    def of_arrays(cls, mechanism: MechanismLike, key: bytes | None = None) -> Self:
        """Build the one-mechanism form used by `release_array`, for arrays of inputs.

        Raises:
            MechanismError: its outputs are tuples of as many parts, which are no column.
        """
        made = as_mechanism(mechanism).with_named_outputs()
        first = made.inputs[0]
        width = len(first) if isinstance(first, tuple) else 1
        release = ColumnRelease(made, tuple(f"part {k + 1}" for k in range(width)))
        if len(release.output_columns) > 1:
            raise MechanismError(
                f"the outputs are tuples, such as {made.outputs[0]!r}, which are no column: release the table"
            )
        return cls((release,), (), key=key)

    def array(self, arrays: Sequence[Any], *place: object) -> Any:
        """Release arrays of input columns as one array."""
        whole = [one.combine_chunks() if hasattr(one, "combine_chunks") else one for one in arrays]
        names = list(self.releases[0].columns)
        return self(pyarrow.RecordBatch.from_arrays(whole, names=names), *place).column(0)

    @property
    def array_type(self) -> Any:
        """Return the Arrow type of the array that `release_array` returns."""
        return get_label_type(self.releases[0].output_columns[0][1])

    def with_key(self, seed: int | None = None) -> Self:
        """Return a copy with a fresh random key, or a key from a test seed."""
        return type(self)(self.releases, self.keep, self.drop_missing, make_key(seed))

    def __call__(self, batch: Any, *place: object) -> Any:
        """Release one record batch; `place` makes its randomness unique under the key.

        Raises:
            InputError: there is no such column, two mechanisms are for one, or a key has no place.
            MechanismError: a cell is no input of its mechanism.
        """
        table, schema = self._start(batch.schema)
        rows = TableBatch(batch.columns, batch.num_rows, 0, text=False, names=batch.schema.names)
        codes = table.encode_inputs(rows)
        bits: list[RandomBits] = [SystemBits()] * len(codes)
        if self.key is not None:
            if not place:
                raise InputError("a key draws the same at one place: give the place of the batch")
            letters = hashlib.sha256(b"".join(code.tobytes() for code in codes)).hexdigest()
            # of its own for each mechanism, so that two columns share none
            bits = [KeyedBits(self.key, *place, letters, number) for number in range(len(codes))]
        kept, drawn = table.draw_outputs(codes, bits)
        arrays = [
            gather_all_cells(cells)
            if column.place is not None
            else column.values.take(integers_to_arrow(cells))
            for cells, column in zip(
                table.make_cells(rows, kept, drawn), table.columns, strict=True
            )
        ]
        return pyarrow.RecordBatch.from_arrays(arrays, schema=schema)

    def schema(self, schema: Any) -> Any:
        """Return the output schema for an input schema."""
        return self._start(schema)[1]

    def _start(self, schema: Any) -> tuple[ColumnReleaser, Any]:
        """Build the releaser and output schema for an input schema."""
        schema = schema.remove_metadata()  # with those of pandas, pyarrow below 22 cannot hash it
        if schema not in self._releasers_by_schema:
            kept = self.keep
            dropped = self.drop_missing
            table = ColumnReleaser(
                self.releases,
                schema.names,
                "the batch",
                typed=True,
                keep=kept,
                drop_missing=dropped,
            )
            for column in table.columns:
                check_readable_labels(column, "a column of mixed kinds")
            self._releasers_by_schema[schema] = (
                table,
                pyarrow.schema(
                    pyarrow.field(
                        column.name,
                        column.values.type
                        if column.place is None
                        else get_plain_type(schema.field(column.place).type, column.name),
                    )
                    for column in table.columns
                ),
            )
        return self._releasers_by_schema[schema]

    @cached_property
    def _releasers_by_schema(self) -> dict[Any, tuple[ColumnReleaser, Any]]:
        """Return the cache of releasers by input schema."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        return {
            name: value for name, value in self.__dict__.items() if name != "_releasers_by_schema"
        }


def by_history(mechanisms: Mapping[Labels, MechanismLike]) -> Mechanism:
    """Build a mechanism whose inputs are (release history, letter) tuples.

    With it an engine releases a further wave of a ledger or a stream: it groups people by what was released
    of them, each history has its mechanism P_h, and `P[(*h, x), y] = P_h[x, y]`.

    Args:
        mechanisms: by the tuple of outputs that were released before, in the order of the releases; before
            the first it is empty. An output that only others have has the probability 0.

    Raises:
        MechanismError: there is none.

    Examples:
        >>> letters = ["a", "b"]
        >>> first, second = Mechanism(np.eye(2), letters, letters), Mechanism([[1.0], [1.0]], letters, ["a"])
        >>> both = by_history({("no",): first, ("yes",): second})
        >>> both.inputs[1], both.matrix[1].tolist(), both.matrix[3].tolist()
        (('no', 'b'), [0.0, 1.0], [1.0, 0.0])
    """
    made = {history: as_mechanism(one) for history, one in mechanisms.items()}
    if not made:
        raise MechanismError("no history has a mechanism: give one for each")
    outputs = {make_label_key(label): label for one in made.values() for label in one.outputs}
    places = {key: place for place, key in enumerate(outputs)}
    matrix = np.zeros((sum(len(one.inputs) for one in made.values()), len(outputs)))
    first = 0
    for one in made.values():
        columns = [places[make_label_key(label)] for label in one.outputs]
        matrix[first : first + len(one.inputs), columns] = one.matrix
        first += len(one.inputs)
    inputs = [
        (*history, letter) if history else letter
        for history, one in made.items()
        for letter in one.inputs
    ]
    return Mechanism(matrix, inputs, list(outputs.values()))


class _ColumnStep:
    """The state of one mechanism applied to its columns."""

    def __init__(
        self,
        release: ColumnRelease,
        names: Sequence[str],
        where: object,
        typed: bool,
        drop_missing: bool,
    ) -> None:
        self.release = release
        self._where = where
        self._drop_missing = drop_missing
        self.places = [find_column(names, column, where) for column in release.columns]
        self._known = _index_inputs(release, typed=typed)
        self._rows: dict[tuple[Any, ...], int] = {}

    @cached_property
    def sampler(self) -> RowSampler:
        """Return the output sampler, built on first use."""
        return RowSampler(self.release.mechanism.matrix)

    def encode_batch(self, batch: TableBatch) -> IntArray:
        """Encode a batch as (size,) matrix row indices, or `_LEFT_OUT` or `_UNKNOWN`."""
        values, codes = find_tuples(batch, self.places)
        rows = np.array([self._find_row(value) for value in values], dtype=np.int64)
        return rows[codes]

    def _find_row(self, value: tuple[Any, ...]) -> int:
        """Look up a value's matrix row, cached by value and type (True equals 1)."""
        key = (value, *map(type, value))
        if key in self._rows:
            return self._rows[key]
        filled = replace_missing(value)
        row = self._known.get(make_label_key(filled))
        if row is None:
            row = self._known.get(tuple(map(str, filled)), _UNKNOWN)
        if row >= 0:
            self._rows[key] = row
        if row == _UNKNOWN and self._drop_missing and any(map(is_absent, value)):
            return _LEFT_OUT
        return row

    def refuse_row(self, batch: TableBatch, row: int) -> NoReturn:
        """Raise an error for a row whose value is not an input of the mechanism."""
        values, codes = find_tuples(batch, self.places)
        value = values[int(codes[row])]
        shown = replace_missing(value)
        letter = shown[0] if len(shown) == 1 else shown
        inputs = self.release.mechanism.inputs
        remedy = "correct the data, or give a mechanism with a row for it"
        if any(map(is_absent, value)):
            remedy = "give --missing drop to leave such rows out"
        raise MechanismError(
            f"{self._where}: {batch.name_row(row)}: the value {letter!r} is not an input of the mechanism, "
            f"whose inputs are {abbreviate(inputs)}{describe_difference([letter], inputs)}: {remedy}"
        )


_LEFT_OUT, _UNKNOWN = -1, -2


def _index_inputs(release: ColumnRelease, *, typed: bool) -> dict[Label, int]:
    """Index the matrix rows by value tuple, and by text where unambiguous.

    Cells of a CSV file are text, and all inputs must then read differently.
    """
    inputs = release.mechanism.inputs
    count = len(release.columns)
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
            f"two of the inputs {abbreviate(inputs)} read alike, and the cells of a CSV file are text"
        )
    by_text: dict[Label, int] = {} if alike else {parts: row for row, parts in enumerate(texts)}
    return {**by_text, **{make_label_key(parts): row for row, parts in enumerate(tuples)}}
