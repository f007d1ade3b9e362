"""Value counts of columns and column pairs, and state sequences by person."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any, cast

import numpy as np

from pmlopt.core.declared_orders import make_rank, merge_orders
from pmlopt.core.files.matrix_layout import is_number
from pmlopt.core.frames import MISSING_LETTER, Missing, MissingKind, check_missing, is_absent
from pmlopt.core.numbers.arrays import BoolArray, IntArray, Label, parse_labels
from pmlopt.core.numbers.counts import CountedTuples, LabelledSequences
from pmlopt.errors import InputError, LabelWarning
from pmlopt.tables.letter_tables import check_rows_are_people
from pmlopt.tables.missing_cells import MissingRows
from pmlopt.tables.reading import Table, TableBatch, find_column, open_table
from pmlopt.tables.streams import CsvFormat
from pmlopt.tables.table import find_similar_column, make_type_error
from pmlopt.tables.weights import check_batch_weights


def column_counts(
    data: Any, column: str, missing: Missing = "refuse", form: CsvFormat | None = None
) -> dict[Label, int]:
    r"""Count the values of a column, for `Prior.from_counts`.

    Cells of a CSV file are numbers where all of them are, as Python writes them, and else text.

    Args:
        data: the path of a CSV, Parquet or Arrow file, or a folder of Parquet files; a data frame, where an
            engine (Polars, DuckDB, Dask, Spark) counts what it has not computed; or a mapping from names to
            columns.
        column: its name.
        missing: what to do with a missing cell (an empty one of a CSV file, null, or NaN): `refuse` it,
            `drop` the row, or count it as the `letter` "", the empty text.
        form: delimiter and encoding of a CSV file, where they shall not be found.

    Raises:
        InputError: there is no such column, it holds a missing cell that is refused, columns have different
            numbers of rows, or there is no such way with missing cells.

    Examples:
        >>> column_counts({"level": ["b", "a", "b", None]}, "level", missing="drop")
        {'a': 1, 'b': 2}
    """
    return counts_by_column(data, [column], missing, form)[column]


def cross_counts(
    data: Any, rows: str, columns: str, missing: Missing = "refuse", form: CsvFormat | None = None
) -> dict[tuple[Label, Label], int]:
    """Count the value pairs of two columns, for `Secret.from_counts`.

    Args:
        data: as for `column_counts`.
        rows: the name of the one column, such as that of a secret.
        columns: the name of the other.
        missing: as for `column_counts`, for either cell.
        form: the same.

    Examples:
        >>> table = {"ill": ["no", "yes", "no"], "age": [30, 70, 30]}
        >>> cross_counts(table, "ill", "age")
        {('no', 30): 2, ('yes', 70): 1}
    """
    with open_table(data, form) as table:
        found = count_tuples(table, [rows, columns], missing)
    return cast("dict[tuple[Label, Label], int]", found)


def counts_by_column(
    data: Any,
    columns: Sequence[str] | None = None,
    missing: Missing = "refuse",
    form: CsvFormat | None = None,
) -> dict[str, dict[Label, int]]:
    """Count the values of several columns in one pass.

    Args:
        data: as for `column_counts`.
        columns: their names; None for all.
        missing: as for `column_counts`, for each column separately.
        form: the same.

    Examples:
        >>> counts_by_column({"ill": ["no", "yes", "no"], "age": [30, 70, 30]})
        {'ill': {'no': 2, 'yes': 1}, 'age': {30: 2, 70: 1}}
    """
    with open_table(data, form) as table:
        names = table.names if columns is None else columns
        found = _count_groups(table, [[name] for name in names], missing)
    return {
        name: {label: count for (label,), count in counts.items()}
        for name, counts in zip(names, found, strict=True)
    }


def state_sequences(
    data: Any, person: str, column: str, time: str | None = None, form: CsvFormat | None = None
) -> list[list[Label]]:
    """Collect each person's states in time order, for `Chain.from_sequences`.

    Args:
        data: as for `column_counts`, with a row for each person and time.
        person: the name of the column that states whose row it is.
        column: of the one with the states.
        time: of the one with the times, which is sorted by, as numbers where all of them are, else as text;
            left out, earlier rows come before later ones.
        form: as for `column_counts`.

    Raises:
        InputError: a cell is missing, a person has two rows of one time, or times have no order.

    Examples:
        >>> table = {"who": ["p", "q", "p"], "day": [2, 1, 1], "place": ["out", "home", "home"]}
        >>> state_sequences(table, "who", "place", "day")
        [['home', 'out'], ['home']]
    """
    with open_table(data, form) as table:
        names = [person, column, *([] if time is None else [time])]
        places = [find_column(table.names, name, table.where) for name in names]
        rows: list[tuple[Any, ...]] = []
        orders: dict[Any, None] = {}
        for batch in table.batches():
            orders[batch.find_order(places[1])] = None
            values, codes = find_tuples(batch, places)
            rows += [values[code] for code in codes.tolist()]
            # the distinct tuples are looked at, which are few, and not every row
            parts = (part for value in values for part in zip(names, value, strict=True))
            lacking = next((name for name, cell in parts if is_absent(cell)), None)
            if lacking is not None:
                raise InputError(
                    f"{table.where}: a cell of {lacking!r} is missing: leave such rows out"
                )
        labels = [_to_labels([row[k] for row in rows], table) for k in range(len(names))]
        order = _merge_column_orders(table, column, orders)
    # people in the order of their first row
    found: dict[Any, list[tuple[Any, Label]]] = {}
    for number, row in enumerate(rows):
        when = number if time is None else labels[2][row[2]]
        found.setdefault(row[0], []).append((when, labels[1][row[1]]))
    for who, states in found.items():
        try:
            states.sort(key=lambda pair: pair[0])
        except TypeError:
            raise InputError(
                f"{table.where}: the times of {who!r} have no order: give one kind"
            ) from None
        # after the sort equal times are neighbours
        twice = next((a for (a, _), (b, _) in pairwise(states) if a == b), None)
        if twice is not None:
            raise InputError(
                f"{table.where}: {who!r} has two rows of the time {twice!r}: give one state"
            )
    sequences = ([state for _, state in states] for states in found.values())
    return LabelledSequences(sequences, order)


def count_tuples(
    table: Table, columns: Sequence[str], missing: Missing, lacking: MissingRows | None = None
) -> CountedTuples:
    """Count the value tuples of some columns, in ascending order.

    Args:
        table: that is read.
        columns: their names.
        missing: as for `column_counts`.
        lacking: counts the rows with a missing cell, for the caller, and names the column of weights.

    Raises:
        InputError: there is no such column, or a cell is missing that is refused, or no weight.
    """
    tallies = None if lacking is None else [lacking]
    return _count_groups(table, [columns], missing, tallies)[0]


def _count_groups(
    table: Table,
    groups: Sequence[Sequence[str]],
    missing: Missing,
    tallies: Sequence[MissingRows] | None = None,
) -> list[CountedTuples]:
    """Count value tuples for several column groups, and the rows with a missing cell of each."""
    check_missing(missing)
    for column in (column for group in groups for column in group):
        _check_column(table, column, missing)
    counts: list[dict[tuple[Any, ...], int]] = [{} for _ in groups]
    lacking = [MissingRows() for _ in groups] if tallies is None else tallies
    for tally, group in zip(lacking, groups, strict=True):
        tally.columns = group
        tally.where = table.where
    # groups that no engine counts share one pass over the table, under the key -1
    passes: dict[int, tuple[Table, list[int]]] = {}
    for number, group in enumerate(groups):
        counted = table.count_by_engine(group)
        passes.setdefault(number if counted is not table else -1, (counted, []))[1].append(number)
    orders: dict[str, tuple[Any, ...] | None] = {}
    for counted, numbers in passes.values():
        tasks = [(groups[k], counts[k], lacking[k]) for k in numbers]
        orders |= _count_in_one_pass(table, counted, tasks, missing)
    if missing == "refuse":  # at the end, so that the message has the number of such rows
        for tally in lacking:
            tally.refuse()
    return [_sort_counts(table, *one, orders) for one in zip(groups, counts, strict=True)]


def _check_column(table: Table, column: str, missing: Missing) -> None:
    """Raise an InputError where there is no such column, with what stands in the way of one like it."""
    try:
        find_column(table.names, column, table.where)
    except InputError as error:
        similar = find_similar_column(table.names, column)
        if missing != "refuse" or similar is None or similar == column:
            raise
        tally = MissingRows([similar], table.where)
        counted = table.count_by_engine([similar])
        place = find_column(counted.names, similar, table.where)
        for batch in counted.batches():
            tally.add_batch(batch, *find_tuples(batch, [place]))
        if not tally.missing:
            raise
        raise InputError(f"{error}. {tally.describe_choice()}") from None


def _count_in_one_pass(
    table: Table,
    counted: Table,
    tasks: Sequence[tuple[Sequence[str], dict[tuple[Any, ...], int], MissingRows]],
    missing: Missing,
) -> dict[str, tuple[Any, ...] | None]:
    """Count several groups of columns in one pass over a table, or over what an engine has counted.

    Args:
        table: of which columns are counted.
        counted: the same, or its counts by an engine.
        tasks: the columns, the counts to which theirs are added, and the rows with a missing cell.
        missing: as for `column_counts`.

    Returns:
        The declared order of each column; None where it has none.
    """
    places = [
        [find_column(counted.names, column, table.where) for column in columns]
        for columns, _, _ in tasks
    ]
    orders: dict[str, dict[Any, None]] = {name: {} for columns, _, _ in tasks for name in columns}
    read: list[TableBatch] = []  # the first two batches: a table of letters fits into one
    names = {name for columns, _, _ in tasks for name in columns}
    for batch in counted.read_columns(names):
        read = [*read, batch][:2]
        for own, (columns, counts, tally) in zip(places, tasks, strict=True):
            add_batch_counts(counts, batch, own, missing, tally)
            for column, place in zip(columns, own, strict=True):
                orders[column][batch.find_order(place)] = None
    if counted is table:
        for columns, counts, _ in tasks:
            check_rows_are_people(table, read, columns, len(counts))
    return {column: _merge_column_orders(table, column, found) for column, found in orders.items()}


def _merge_column_orders(
    table: Table, column: str, orders: Iterable[Sequence[Any] | None]
) -> tuple[Any, ...] | None:
    """Return the order that all batches of a column declare, or None; warn where the file lost it."""
    if column in table.lost_orders:
        warnings.warn(
            f"{table.where}: the categories of {column!r} are ordered, and the file does not hold their "
            "order: they are sorted as text is. Write the file with dictionaries to keep it",
            LabelWarning,
            stacklevel=2,
        )
        return None
    try:
        return merge_orders(orders)
    except InputError as error:
        raise InputError(f"{table.where}: the column {column!r}: {error}") from None


def _sort_counts(
    table: Table,
    columns: Sequence[str],
    counts: Mapping[tuple[Any, ...], int],
    orders: Mapping[str, tuple[Any, ...] | None],
) -> CountedTuples:
    """Convert counts to labels in ascending order."""
    if not counts:
        raise InputError(
            f"{table.where}: has no row with a value in {', '.join(map(repr, columns))}: leave it out"
        )
    kinds = [_to_labels([key[k] for key in counts], table) for k in range(len(columns))]
    for column, kind in zip(columns, kinds, strict=True):
        for label in kind.values():
            if isinstance(label, bytes | timedelta | Decimal):
                raise make_type_error(column, type(label).__name__)
        _check_numbers(column, kind, table)
        table.warn_of_labels(column, list(kind.values()))
    try:
        letters = [
            sort_values(kind, orders[column], table.missing_letters)
            for column, kind in zip(columns, kinds, strict=True)
        ]
    except TypeError:
        raise InputError(
            f"{table.where}: a column mixes kinds that have no order, such as text and numbers: convert it "
            "to one kind"
        ) from None
    return CountedTuples(
        {
            tuple(kind[part] for kind, part in zip(kinds, key, strict=True)): counts[key]
            for key in sort_tuples(counts, letters)
        },
        [[kind[part] for part in side] for kind, side in zip(kinds, letters, strict=True)],
    )


def sort_values(
    kind: Mapping[Any, Label],
    order: Sequence[Any] | None = None,
    absent: Collection[Label] = (MISSING_LETTER,),
) -> list[Any]:
    """Sort the values of a column: by the declared order, else numeric text by number, and other text by
    the alphabet. The letters for missing cells come last, unless the order has them.

    Args:
        kind: the label of each value.
        order: that the column declares.
        absent: the letters for missing cells.

    Raises:
        TypeError: the labels have no order.
    """
    present = [
        value for value in kind if order is None or value in order or kind[value] not in absent
    ]
    rank = make_rank(present, order)
    if rank is None:
        return sorted(kind, key=_make_sort_key(kind, absent))
    return [*sorted(present, key=rank), *(value for value in kind if value not in set(present))]


def sort_tuples(
    tuples: Iterable[tuple[Any, ...]], letters: Sequence[Sequence[Any]]
) -> list[tuple[Any, ...]]:
    """Sort tuples of values by the order of the values at each place.

    Examples:
        >>> sort_tuples([("yes", "high"), ("no", "high"), ("no", "low")], [("no", "yes"), ("low", "high")])
        [('no', 'low'), ('no', 'high'), ('yes', 'high')]
    """
    # ranks are computed once for each column: keys of mixed types need no comparison then
    ranks = [{value: rank for rank, value in enumerate(side)} for side in letters]
    return sorted(
        tuples, key=lambda key: [rank[part] for rank, part in zip(ranks, key, strict=True)]
    )


def add_batch_counts(
    counts: dict[tuple[Any, ...], int],
    batch: TableBatch,
    places: Sequence[int],
    missing: Missing,
    lacking: MissingRows,
) -> None:
    """Add a batch's value-tuple counts to running counts, and its rows with a missing cell to theirs."""
    if (weight := lacking.weight_column) is not None:
        place = places[list(lacking.columns).index(weight)]
        check_batch_weights(batch, place, weight, lacking.where, missing)
    values, codes = find_tuples(batch, places)
    mask = lacking.add_batch(batch, values, codes)
    kept: slice | BoolArray = slice(None)
    if mask is not None and missing == "letter":
        values = [replace_missing(value) for value in values]
    elif mask is not None:
        kept = ~mask
    if batch.times is None:
        numbers = np.bincount(codes[kept], minlength=len(values))
    else:
        numbers = np.zeros(len(values), dtype=np.int64)
        np.add.at(numbers, codes[kept], batch.times[kept])
    for value, number in zip(values, numbers.tolist(), strict=True):
        if number:
            counts[value] = counts.get(value, 0) + number


def count_pairs(
    batch: TableBatch, places: Sequence[int], letters: IntArray
) -> dict[tuple[Label, Label], int]:
    """Count value tuples by letter in a batch.

    Args:
        batch: some rows.
        places: of the columns; a missing cell is the letter for it, and one that is no letter its `repr`.
        letters: (size,) whole numbers from 0 on, or -1 for a row that is not counted.
    """
    values, codes = find_tuples(batch, places)
    filled_in = [tuple(map(_name_cell, replace_missing(value))) for value in values]
    width = int(letters.max(initial=0)) + 1
    pairs, own = _number_codes((codes.astype(np.int64) * width + letters)[letters >= 0])
    numbers = np.bincount(own, minlength=len(pairs))
    counts: dict[tuple[Label, Label], int] = {}
    for pair, number in zip(pairs.tolist(), numbers.tolist(), strict=True):
        key = filled_in[pair // width], pair % width
        counts[key] = counts.get(key, 0) + number  # the letter may be a value too
    return counts


def _name_cell(value: Any) -> Label:
    """Return a value if it is text or a number, and else its `repr`, which equal ones have alone."""
    return value if isinstance(value, str | int | float) else repr(value)


def replace_missing(value: Iterable[Any]) -> tuple[Any, ...]:
    """Replace missing cells in a value tuple by their letters.

    Examples:
        >>> replace_missing((1, None, MissingKind(".a", ".a (refused)")))
        (1, '', '.a')
    """
    return tuple(
        MISSING_LETTER if part is None else part.letter if isinstance(part, MissingKind) else part
        for part in value
    )


def find_tuples(batch: TableBatch, places: Sequence[int]) -> tuple[list[tuple[Any, ...]], IntArray]:
    """Find a batch's distinct value tuples with row indices."""
    values, codes = batch.encode_column(places[0])
    tuples = [(value,) for value in values]
    for place in places[1:]:
        others, other_codes = batch.encode_column(place)
        pairs, codes = _number_codes(codes.astype(np.int64) * len(others) + other_codes)
        tuples = [
            (*tuples[pair // len(others)], others[pair % len(others)]) for pair in pairs.tolist()
        ]
    return tuples, codes


def _number_codes(codes: IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct codes in ascending order, and the number among them of each."""
    if not len(codes) or codes.max() > 4 * len(codes):
        return np.unique(codes, return_inverse=True)
    occurs = np.bincount(codes) > 0  # few combinations need no sorting of all rows
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[codes]


def _to_labels(values: Sequence[Any], table: Table) -> Mapping[Any, Label]:
    """Convert values to labels: numbers for all-numeric CSV text."""
    distinct = list(dict.fromkeys(values))
    if table.typed:
        return {value: value for value in distinct}
    return dict(zip(distinct, parse_labels(distinct), strict=True))


def _make_sort_key(
    labels: Mapping[Any, Label], absent: Collection[Label]
) -> Callable[[Any], tuple[bool, Any]]:
    """Return the sort key of labels; numeric text by number.

    The letters for missing cells come last.
    """
    missing = {value for value, label in labels.items() if label in absent}
    texts = [label for value, label in labels.items() if value not in missing]
    as_numbers = all(
        isinstance(text, str) and is_number(text) and "_" not in text for text in texts
    )

    def rank_value(value: Any) -> tuple[bool, Any]:
        if value in missing:
            return True, labels[value]
        label: Any = labels[value]
        return False, (float(label), label) if as_numbers and float(label) == float(
            label
        ) else label

    return rank_value


_WRITTEN_NUMBER = re.compile(r"[+-]?([1-9]\d{0,2}([., '\u2019\u00a0\u202f]\d{3})+|\d+)([.,]\d+)?")
"""A number with a decimal comma or with separators between thousands, or a plain one."""


def _check_numbers(column: str, labels: Mapping[Any, Label], table: Table) -> None:
    """Raise an error for CSV numbers with decimal commas or separators.

    As text they would have no values, and the order of text.
    """
    if table.typed:
        return
    texts = [
        text.strip() for text in labels.values() if isinstance(text, str) and text != MISSING_LETTER
    ]
    odd = next((text for text in texts if not is_number(text)), None)
    if odd is not None and all(map(_WRITTEN_NUMBER.fullmatch, texts)):
        raise InputError(
            f"{table.where}: the column {column!r} has numbers with decimal commas, or with separators "
            f"between thousands, such as {odd!r}: write them as in 1234.5, without separators"
        )
