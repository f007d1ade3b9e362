"""Random changes of files: of their words and lines, values, members, columns, or bytes."""

from __future__ import annotations

import gzip
import io
import json
import re
import warnings
import zipfile
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pyarrow
import pyarrow.feather
import pyarrow.parquet
from mutate_state import change_array, change_content, change_value

TOKENS = (
    "nan", "inf", "-1", "1e400", "1e-400", "0", "", "1,5", "1" + "0" * 5000, "\0", '"', "'", ";", "\t", "\r",
    "(1, 2)", "((((", "[" * 200, "NA", "True", "\ufeff", "\u2028", "é", "50%", "0x10", "1_000", "=1+1",
)  # fmt: skip
"""What a word or number of a text becomes."""


CELLS: Mapping[str, Any] = {
    "lists": pyarrow.array([[1], [], None]),
    "structs": pyarrow.array([{"a": 1}, None]),
    "maps": pyarrow.array([[("a", 1)], None], pyarrow.map_(pyarrow.string(), pyarrow.int64())),
    "bytes": pyarrow.array([b"\xff", b"", None]),
    "decimals": pyarrow.array([Decimal("1.50"), Decimal("2"), None]),
    "wide decimals": pyarrow.array([Decimal(10) ** 40, Decimal(1)], pyarrow.decimal256(60, 2)),
    "dates": pyarrow.array([date(2026, 1, 1), None]),
    "times": pyarrow.array([datetime(2026, 1, 1, tzinfo=UTC), None]),
    "spans": pyarrow.array([timedelta(1), None]),
    "nulls": pyarrow.nulls(2),
    "empty texts": pyarrow.array(["", "a", None]),
    "numbers": pyarrow.array([np.nan, np.inf, -0.0, 1e308, None]),
    "halves": pyarrow.array(np.array([0.5, 1], dtype=np.float16)),
    "large": pyarrow.array([2**64 - 1, 0], pyarrow.uint64()),
    "truths": pyarrow.array([True, False, None]),
    "ordered": pyarrow.DictionaryArray.from_arrays([1, 0, None], ["b", "a"], ordered=True),
    "twice": pyarrow.DictionaryArray.from_arrays(
        [1, 0, 2], ["a", "a", None], ordered=True, safe=False
    ),
    "no text": pyarrow.array([b"\xff", b"a"]).view(pyarrow.string()),
}
"""What the cells of a column become."""


def change_text(content: bytes, rng: np.random.Generator) -> bytes:
    """Change a word or a line of a text."""
    text = content.decode("utf-8", "surrogateescape")
    kind = str(rng.choice(["word", "word", "drop", "double", "swap", "blank"]))
    if kind == "word":
        words = list(re.finditer(r"[\w.+-]+|$", text))
        found = words[int(rng.integers(len(words)))]
        token = TOKENS[int(rng.integers(len(TOKENS)))]
        text = text[: found.start()] + token + text[found.end() :]
    else:
        lines = text.splitlines(keepends=True) or [""]
        one, other = rng.integers(len(lines), size=2).tolist()
        if kind == "drop":
            del lines[one]
        elif kind == "double":
            lines.insert(one, lines[other])
        elif kind == "swap":
            lines[one], lines[other] = lines[other], lines[one]
        else:
            lines.insert(one, "\n")
        text = "".join(lines)
    return text.encode("utf-8", "surrogateescape")


def change_record(content: bytes, rng: np.random.Generator) -> bytes:
    """Change a value of JSON, which may be preceded by nothing else."""
    data = [json.loads(content)]
    change_value(data, rng)
    return json.dumps(data[0] if data else None).encode()


def is_record(content: bytes) -> bool:
    """Return whether a file is one value of JSON."""
    try:
        return isinstance(json.loads(content), dict | list)
    except ValueError:
        return False


def change_archive(content: bytes, rng: np.random.Generator) -> bytes:
    """Change a member of a ZIP archive: its bytes, its name, or that it is there; its check sum is right."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    place = int(rng.integers(len(members)))
    name, held = members[place]
    kind = str(rng.choice(["content", "content", "content", "name", "drop", "double", "add"]))
    if kind == "content":
        members[place] = name, change_member(held, rng)
    elif kind == "name":
        members[place] = str(rng.choice(["x.npy", "../x", "x.txt", "about", name.upper()])), held
    elif kind == "drop":
        del members[place]
    elif kind == "double":
        members.append(members[place])
    else:
        members.append((str(rng.choice(["note.txt", "x.npy", "a/b.npy"])), b"no array"))
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for one, data in members:
            archive.writestr(one, data)
    return stream.getvalue()


def change_member(content: bytes, rng: np.random.Generator) -> bytes:
    """Change an array of numpy, JSON that is held in one, a text, or bytes."""
    if not content.startswith(b"\x93NUMPY"):
        return (change_text if rng.random() < 0.7 else partial(change_bytes, times=1))(content, rng)
    if rng.random() < 0.2:
        return change_bytes(content, rng, times=1)
    array = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    if array.dtype == np.uint8 and array.tobytes().lstrip().startswith(b"{"):
        array = np.frombuffer(change_record(array.tobytes(), rng), dtype=np.uint8)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numbers that a type does not hold
            array = change_array(array, rng)[0]
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array), allow_pickle=False)
    return stream.getvalue()


def change_columns(content: bytes, rng: np.random.Generator) -> bytes:
    """Change a column of a Parquet or Arrow file: its name, its type, its cells, or that it is there."""
    is_parquet = content.startswith(b"PAR1")
    source = io.BytesIO(content)
    table = (pyarrow.parquet if is_parquet else pyarrow.feather).read_table(source)
    place = int(rng.integers(table.num_columns))
    kind = str(
        rng.choice(["cells", "cells", "cells", "name", "drop", "double", "rows", "metadata"])
    )
    name = table.column_names[place]
    if kind == "cells":
        cells = list(CELLS.values())[int(rng.integers(len(CELLS)))]
        rows = pyarrow.array([k % len(cells) for k in range(table.num_rows)], pyarrow.int64())
        table = table.set_column(place, name, cells.take(rows))
    elif kind == "name":
        names = ["", "income", "__index_level_0__", "\u202e", "count", "input", "a\0b"]
        names = [
            str(rng.choice(names)) if k == place else one
            for k, one in enumerate(table.column_names)
        ]
        table = table.rename_columns(names)
    elif kind == "drop":
        table = table.remove_column(place)
    elif kind == "double":
        table = table.append_column(name, table.column(place))
    elif kind == "rows":
        table = table.slice(0, int(rng.integers(table.num_rows)))
    else:
        table = table.replace_schema_metadata(
            {b"pandas": bytes(rng.choice([b"{", b"[]", b"null", b'{"index_columns": 1}']))}
        )
    stream = io.BytesIO()
    try:
        if is_parquet:
            pyarrow.parquet.write_table(table, stream)
        else:
            pyarrow.feather.write_feather(table, stream, compression="uncompressed")
    except (pyarrow.ArrowException, OSError):  # the format has no such column
        return change_bytes(content, rng)
    return stream.getvalue()


def change_bytes(content: bytes, rng: np.random.Generator, times: int | None = None) -> bytes:
    """Change bytes once or a few times."""
    for _ in range(int(rng.integers(1, 4)) if times is None else times):
        content = change_content(content, rng)[0]
    return content


def change_file(content: bytes, rng: np.random.Generator) -> bytes:
    """Change a file: by what it is in most cases, else by its bytes."""
    if rng.random() < 0.25:
        return change_bytes(content, rng)
    if content.startswith(b"PK"):
        return change_archive(content, rng)
    if content.startswith(b"\x1f\x8b"):
        return gzip.compress(change_file(gzip.decompress(content), rng), 1, mtime=0)
    if content.startswith(b"\x93NUMPY"):
        return change_member(content, rng)
    if content.startswith((b"PAR1", b"ARROW1")):
        return change_columns(content, rng)
    if rng.random() < 0.8 and is_record(content):
        return change_record(content, rng)
    try:
        content.decode()
    except UnicodeDecodeError:
        return change_bytes(content, rng)
    return change_text(content, rng)
