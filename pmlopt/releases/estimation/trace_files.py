"""Files of programs: how often each trace occurs, and samples that come line by line."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pmlopt.core.arrays import NUMBER_HEADERS, Label, indices_of, parse_labels
from pmlopt.core.records import parse_json
from pmlopt.data.prior import Prior
from pmlopt.errors import FileFormatError, InputError
from pmlopt.measures.trace_counts import InputLeakages, TraceLeakage, leakage_of_counts
from pmlopt.tables.reading import open_table, read_texts

INPUT_HEADER, TRACES_HEADER = "input", "traces"
"""Headers of the columns of the attacker's public input, and of the number of traces of a class."""


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
        texts = dict(zip(names, read_texts(table, names), strict=True))
    lowered = {name.strip().lower(): name for name in names}
    counted = [lowered[name] for name in NUMBER_HEADERS if name in lowered]
    if not counted and len(names) == 2:
        counted = names[1:]
    if len(counted) != 1:
        raise FileFormatError(
            f"{path}: has the columns {', '.join(names)}: name the column of numbers count or probability"
        )
    special = [lowered[name] for name in (INPUT_HEADER, TRACES_HEADER) if name in lowered]
    labelled = [name for name in names if name not in (*counted, *special)]
    if not labelled:
        raise FileFormatError(f"{path}: has no column of traces")
    columns = [parse_labels(texts[name]) for name in labelled]
    traces: Sequence[Label] = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
    copies = texts[lowered[TRACES_HEADER]] if TRACES_HEADER in lowered else ["1"] * len(traces)
    inputs: Sequence[Label] = [None] * len(traces)
    if INPUT_HEADER in lowered:
        inputs = parse_labels(texts[lowered[INPUT_HEADER]])
    programs = {
        one: _compute_rows(
            [row for row, of in zip(zip(traces, texts[counted[0]], copies, strict=True), inputs, strict=True)
             if of == one],
            path if one is None else f"{path}: the input {one!r}",
        )
        for one in dict.fromkeys(inputs)
    }  # fmt: skip
    return InputLeakages(programs) if INPUT_HEADER in lowered else programs[None]


def _compute_rows(rows: Sequence[tuple[Label, str, str]], where: object) -> TraceLeakage:
    """Compute what a program reveals from rows of trace, number, and number of traces."""
    numbers, copies = (
        {trace: number for trace, number, _ in rows},
        {trace: n for trace, _, n in rows},
    )
    if len(numbers) < len(rows):
        trace = next(one for one, _, _ in rows if sum(other == one for other, _, _ in rows) > 1)
        raise FileFormatError(f"{where}: the trace {trace!r} occurs twice: add its counts up")
    try:
        return leakage_of_counts(numbers, copies)
    except InputError as cause:
        raise type(cause)(f"{where}: {cause}") from None


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
    known: dict[Label, Label] = {}
    for number, line in enumerate(lines, start=1):
        place = f"{where}: line {number}"
        cells = _read_cells(line, keys, place)
        if not cells or (number == 1 and [str(cell).strip().lower() for cell in cells] == keys):
            continue
        output = cells[-1]
        if as_numbers:
            try:
                output = float(output)
            except (TypeError, ValueError):
                raise FileFormatError(f"{place}: the output {output!r} is no number") from None
        if prior is None:
            yield output
            continue
        letter = cells[0]
        if letter not in known:
            (index,) = indices_of([letter], prior.labels, place, FileFormatError, text=True)
            known[letter] = prior.labels[index]
        yield known[letter], output


def _read_cells(line: bytes, keys: Sequence[str], place: str) -> list[Any]:
    """Read the cells of a line, none of an empty one."""
    try:
        text = line.decode("utf-8-sig").strip("\r\n")
    except UnicodeDecodeError:
        raise FileFormatError(f"{place}: is no text in UTF-8") from None
    if not text.strip():
        return []
    if text.lstrip().startswith("{"):
        row = parse_json(line, place)
        missing = [key for key in keys if key not in row]
        if missing:
            raise FileFormatError(f"{place}: the object has no key {missing[0]!r}")
        return [tuple(row[key]) if isinstance(row[key], list) else row[key] for key in keys]
    cells = next(csv.reader([text])) if len(keys) > 1 or text.startswith('"') else [text]
    if len(cells) != len(keys):
        raise FileFormatError(
            f"{place}: has {len(cells)} cell(s): each line is a sample, {','.join(keys)}"
        )
    return cells
