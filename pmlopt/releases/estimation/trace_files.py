"""Files of programs: how often each trace occurs, and samples that come line by line."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator
from itertools import repeat
from pathlib import Path
from typing import Any

from pmlopt.core.arrays import NUMBER_HEADERS, Label, indices_of, parse_labels
from pmlopt.core.records import parse_json
from pmlopt.data.prior import Prior
from pmlopt.errors import FileFormatError, InputError
from pmlopt.measures.trace_counts import InputLeakages, TraceLeakage, leakage_of_counts
from pmlopt.tables.reading import open_table, read_texts


def load_traces(path: str | os.PathLike[str]) -> TraceLeakage | InputLeakages:
    r"""Compute what a program reveals from a file of its traces.

    Args:
        path: a table (CSV, Parquet, Arrow, JSON Lines; `-` for standard input) with a row for each trace: the
            trace in a column or more, and a column named count or probability (the second of two columns may
            have any name), in which "1/3" is a fraction. A column named `input` has the public input that an
            attacker chooses, and one named `traces` the number of traces that a row stands for. Or a JSON
            object from traces to counts.

    Returns:
        A `TraceLeakage`, or an `InputLeakages` where there is a column `input`.

    Raises:
        FileFormatError: the file cannot be read, or has no column of counts.
        MechanismError: the counts are not usable, or a trace occurs twice.

    Examples:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "traces.csv"
        >>> _ = file.write_text("input,trace,count\na,fast,1\na,slow,3\nb,fast,2\nb,slow,2\n")
        >>> load_traces(file).rank_inputs(lambda program: program.compute_level("bits"))
        [('a', 2.0), ('b', 1.0)]
    """
    if Path(path).suffix.lower() == ".json":
        return leakage_of_counts(Path(path))
    with open_table(path) as table:
        names = [str(name) for name in table.names]
        texts = dict(
            zip((name.strip().lower() for name in names), read_texts(table, names), strict=True)
        )
    counted = [name for name in NUMBER_HEADERS if name in texts] or list(texts)[1:]
    copies, inputs = texts.pop("traces", None), texts.pop("input", None)
    if len(counted) != 1 or len(texts) < 2:
        raise FileFormatError(
            f"{path}: has the columns {', '.join(names)}: give columns of the trace and of its numbers, "
            "which is named count or probability"
        )
    numbers = texts.pop(counted[0])
    columns = [parse_labels(column) for column in texts.values()]
    traces = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
    programs: dict[Any, tuple[dict[Label, str], dict[Label, str]]] = {}
    for one, trace, number, copy in zip(
        inputs or repeat(None), traces, numbers, copies or repeat("1"), strict=False
    ):
        rows, times = programs.setdefault(one, ({}, {}))
        if trace in rows:
            raise FileFormatError(f"{path}: the trace {trace!r} occurs twice: add its counts up")
        rows[trace], times[trace] = number, copy
    try:
        found = {one: leakage_of_counts(*counted_rows) for one, counted_rows in programs.items()}
    except InputError as cause:
        raise type(cause)(f"{path}: {cause}") from None
    return found[None] if inputs is None else InputLeakages(found)


def iterate_samples(
    lines: Iterable[bytes], where: object, prior: Prior | None = None, *, as_numbers: bool = False
) -> Iterator[Any]:
    r"""Yield the samples of lines of text as they come, one of each line.

    Args:
        lines: an output in each; with a prior `letter,output`, as CSV; or JSON objects with the keys `output`
            and `letter`. A first line that has these words only is a header, and empty lines are passed over.
        where: the file, for messages.
        prior: N letters, where samples are pairs.
        as_numbers: whether outputs are numbers.

    Raises:
        FileFormatError: a line is no sample; the message has its number.

    Examples:
        >>> list(iterate_samples([b"output\n", b"fast\n", b'{"output": "slow"}\n'], "-"))
        ['fast', 'slow']
    """
    keys = ["output"] if prior is None else ["letter", "output"]
    for number, line in enumerate(lines, start=1):
        place = f"{where}: line {number}"
        try:
            text = line.decode("utf-8-sig").strip()
        except UnicodeDecodeError:
            raise FileFormatError(f"{place}: is no text in UTF-8") from None
        if text.startswith("{"):
            row = parse_json(line, place)
            cells = [row.get(key) for key in keys]
        else:
            cells = next(csv.reader([text]), []) if prior is not None else [text]
        if not text or (number == 1 and cells == keys):
            continue
        if len(cells) != len(keys) or None in cells:
            raise FileFormatError(f"{place}: is no sample, {','.join(keys)}: {text!r:.60}")
        if as_numbers:
            try:
                cells[-1] = float(cells[-1])
            except (TypeError, ValueError):
                raise FileFormatError(f"{place}: the output {cells[-1]!r} is no number") from None
        if prior is not None:
            (index,) = indices_of(cells[:1], prior.labels, place, FileFormatError, text=True)
            yield prior.labels[index], cells[-1]
        else:
            yield cells[-1]
