"""JSON Lines as tables of people."""

from __future__ import annotations

from pathlib import Path

import pytest

from pmlopt.errors import InputError
from pmlopt.tables import open_table


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
