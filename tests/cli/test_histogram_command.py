"""`pmlopt histogram`: noisy counts of the classes of a file."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from commands import run_fully as run

from pmlopt.releases.noise import LaplaceHistogram


def run_json(*arguments: object, code: int = 0) -> dict[str, Any]:
    parsed = json.loads(run(*arguments, "--json", code=code).stdout)
    assert isinstance(parsed, dict)
    return parsed


class TestHistogram:
    """`pmlopt histogram`: a release is a file of classes and counts, and nothing else is touched."""

    COUNTS: ClassVar = {"a": 30, "b": 12, "c": 1}

    @pytest.fixture
    def data(self, tmp_path: Path) -> Path:
        records = [f"{i},{name}" for name, count in self.COUNTS.items() for i in range(count)]
        np.random.default_rng(0).shuffle(records)
        path = tmp_path / "data.csv"
        path.write_text("\n".join(["id,class", *records]) + "\n")
        return path

    @staticmethod
    def read(path: Path) -> list[list[str]]:
        with path.open(newline="") as stream:
            return list(csv.reader(stream))

    def test_the_file_is_that_of_python(self, data: Path, tmp_path: Path) -> None:
        out = tmp_path / "out.csv"
        asked = ("histogram", data, "--column", "class", "--epsilon", 0.5, "--min-mass", 0.1, "--seed", 4,
                 "--classes", "a,b,c")  # fmt: skip
        said = run(*asked, "-o", out).output
        noise = LaplaceHistogram.calibrate(epsilon=0.5, min_mass=0.1)
        expected = noise.release([30, 12, 1], 4)
        assert self.read(out) == [
            ["class", "count"], *([name, str(int(x))] for name, x in zip("abc", expected, strict=True))
        ]  # fmt: skip
        assert b"\r" not in out.read_bytes()
        assert "leaks about a record" in said
        assert "0.5 nats" in said
        assert "3, written to" in said
        parsed = run_json(*asked, "-o", out)
        assert parsed == {
            "format": "pmlopt histogram",
            "scale": noise.scale, "level": noise.level, "dp_level": noise.dp_level, "min_mass": 0.1,
            "public": ["number of records", "classes given"],
            "counts": dict(zip("abc", expected.tolist(), strict=True)),
        }  # fmt: skip
        assert all(isinstance(count, int) for count in parsed["counts"].values())

    def test_without_clipping_and_rounding_and_with_classes_that_were_not_seen(
        self, data: Path, tmp_path: Path
    ) -> None:
        out, noise = tmp_path / "out.csv", LaplaceHistogram.calibrate(epsilon=0.05)
        asked = ("histogram", data, "--column", "class", "--classes", "z, c,b,a,y", "-o", out)
        bare = noise.release([0, 1, 12, 30, 0], 2, clip=False, round_to_whole=False)
        for options, expected in (
            ([], np.maximum(np.rint(bare), 0)),
            (["--no-clip"], np.rint(bare)),
            (["--no-round"], np.maximum(bare, 0)),
            (["--no-clip", "--no-round"], bare),
        ):
            found = run_json(*asked, *options, "--epsilon", 0.05, "--seed", 2)["counts"]
            assert list(found) == ["z", "c", "b", "a", "y"]
            assert list(found.values()) == expected.tolist()
            assert [float(row[1]) for row in self.read(out)[1:]] == expected.tolist()
            assert all("." not in row[1] for row in self.read(out)[1:]) == (
                "--no-round" not in options
            )
        quiet = run_json(*asked, "--epsilon", 1.7, "--min-mass", 0.2)
        assert quiet["counts"] == {"z": 0, "c": 1, "b": 12, "a": 30, "y": 0}

    def test_which_classes_occur_is_not_published_unasked(self, data: Path, tmp_path: Path) -> None:
        """A row for each class that occurs shows the one record of class c, whatever the noise."""
        out = tmp_path / "out.csv"
        asked = ("histogram", data, "--column", "class", "--epsilon", 0.5, "-o", out)
        for options in ((), ("--public-classes", "--classes", "a,b,c")):
            said = run(*asked, *options, code=2).output
            assert "--public-classes" in said
            assert not out.exists()
        assert "set of classes that occur" in run(*asked, "--public-classes").output
        assert run_json(*asked, "--public-classes")["public"] == [
            "number of records", "set of classes that occur"
        ]  # fmt: skip
        assert "classes given" in run(*asked, "--classes", "a,b,c,d").output

    def test_classes_that_occur_come_in_the_order_that_their_column_declares(
        self, tmp_path: Path
    ) -> None:
        pandas = pytest.importorskip("pandas")
        scale, path = ["low", "medium", "high"], tmp_path / "data.parquet"
        column = pandas.Categorical(["high", "low", "medium", "low"], scale, ordered=True)
        pandas.DataFrame({"class": column}).to_parquet(path)
        asked = ("histogram", path, "--column", "class", "--epsilon", 0.5, "-o", tmp_path / "o.csv")
        assert list(run_json(*asked, "--public-classes")["counts"]) == scale
        assert [row[0] for row in self.read(tmp_path / "o.csv")[1:]] == scale
