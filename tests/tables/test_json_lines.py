"""JSON Lines as tables of people."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pmlopt import Mechanism
from pmlopt.errors import InputError, MechanismError
from pmlopt.releases.rows.applying import apply_columns
from pmlopt.releases.rows.batches import ColumnRelease
from pmlopt.tables import column_counts, open_table


def test_lines_of_objects_are_rows(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_bytes(b'{"a":"x","n":1}\n\n{"n":2,"a":"\xc3\xa9"}\r\n{"a":"x"}')
    with open_table(path) as table:
        assert table.names == ["a", "n"]
        assert [batch.size for batch in table.batches()] == [3]


@pytest.mark.parametrize(("text", "words"), [
    ('{"a":"x"}\n["x"]\n', "line 2: is no JSON object"),
    ('{"a":"x"}\n{"a":\n', "line 2"),
    ('{"a":"x"}\n{"a":["x"]}\n', "'a' is no text, number or truth value"),
    ('{"a":"x"}\n{"a":"x","a":"y"}\n', "key 'a' twice"),
    ('{"a":NaN}\n{"a":1}\n', "NaN"),
    ('{\n "a": "x"\n}\n', "JSON"),
    ('[{"a": "x"}]\n', "JSON"),
])  # fmt: skip
def test_other_json_is_refused(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=words):
        open_table(path)


LINES = '\n{"s":"a"}\n\n{"s":"b"}\n{"s":%s}\n{"s":"a"}\n'
"""Of which the third object is in line 5 of the file, as editors count."""


@pytest.mark.parametrize(("cell", "words"), [
    ('"c"', r"line 5: the value 'c'"), ("null", r"line 5: the value"),
])  # fmt: skip
def test_a_wrong_value_is_named_by_its_line(cell: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text(LINES % cell)
    release = ColumnRelease(Mechanism(np.eye(2), ["a", "b"], ["a", "b"]), ("s",))
    with open_table(path) as table, pytest.raises(MechanismError, match=words):
        apply_columns(table, [release], tmp_path / "out.csv", keep_order=True)


@pytest.mark.parametrize("lacking", ['{"s":null}', '{"t":1}'])
def test_a_missing_cell_is_named_by_its_line(lacking: str, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text(LINES.replace('{"s":%s}', lacking))
    with pytest.raises(InputError, match=r"line 5: the cell of 's'"):
        column_counts(path, "s")
    # rows of CSV files stay counted with the header
    other = tmp_path / "answers.csv"
    other.write_text("s,t\na,1\n,2\n")
    with pytest.raises(InputError, match=r"row 3: the cell of 's'"):
        column_counts(other, "s")
