"""Data files in each format: what one writes the other reads, and other endings are refused."""

from pathlib import Path

import pandas as pd
import pytest

from pmlopt import Mechanism
from pmlopt.data.tables import column_counts, open_table
from pmlopt.errors import FileFormatError
from pmlopt.releases.applying import apply_columns
from pmlopt.releases.batches import ColumnRelease

ENDINGS = [".csv", ".tsv", ".txt", "", ".csv.gz", ".csv.bz2", ".csv.zst", ".parquet", ".feather", ".arrow"]
SURE = Mechanism([[0.0, 1.0], [1.0, 0.0]], ["f", "m"], ["f", "m"])
PEOPLE = pd.DataFrame({
    "sex": ["f", "m", "m"] * 1_000, "n": range(3_000), "town": pd.Categorical(list("abb") * 1_000)
})  # fmt: skip


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "people.parquet"
    PEOPLE.to_parquet(path)
    return path


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_is_written_is_read(source: Path, tmp_path: Path, ending: str) -> None:
    target, again = tmp_path / f"out{ending}", tmp_path / "again.csv.gz"
    with open_table(source) as table:
        assert apply_columns(table, [ColumnRelease(SURE, ("sex",))], target).rows == 3_000
    assert column_counts(target, "sex") == {"f": 2_000, "m": 1_000}
    with open_table(target) as table:
        apply_columns(table, [ColumnRelease(SURE, ("sex",))], again)
    back = pd.read_csv(again)
    assert back["sex"].tolist() == PEOPLE["sex"].tolist()
    assert back["n"].tolist() == PEOPLE["n"].tolist()
    assert back["town"].tolist() == PEOPLE["town"].tolist()


@pytest.mark.parametrize("ending", [".xlsx", ".json", ".npz", ".parquet.gz", ".xls"])
def test_other_endings_are_refused_before_anything_is_read(tmp_path: Path, ending: str) -> None:
    with (
        open_table({"sex": ["f"]}) as table,
        pytest.raises(FileFormatError, match=r"end the name in \.parquet"),
    ):
        apply_columns(table, [ColumnRelease(SURE, ("sex",))], tmp_path / f"out{ending}")
    assert not list(tmp_path.iterdir())


def test_a_compressed_file_that_is_cut_short_is_told(source: Path, tmp_path: Path) -> None:
    whole = tmp_path / "whole.csv.gz"
    with open_table(source) as table:
        apply_columns(table, [ColumnRelease(SURE, ("sex",))], whole)
    content = whole.read_bytes()
    for share in (0.01, 0.5, 0.99):
        (tmp_path / "cut.csv.gz").write_bytes(content[: int(share * len(content))])
        with pytest.raises(FileFormatError, match="cut"):
            column_counts(tmp_path / "cut.csv.gz", "sex")
