"""Commands on data files: priors by column, counts, formats, and standard input and output."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.ipc
import pytest
from cli.hostile import refused, write
from commands import run_line as run
from tables.tables_of_any_kind import write_table

from pmlopt import Mechanism

PEOPLE = "id;level;ill\n" + "".join(
    f"{row};{'abc'[row % 3]};{'no' if row % 4 else 'yes'}\n" for row in range(12)
)


@pytest.fixture
def people(folder: Path) -> Path:
    return write(folder, "people.csv", PEOPLE)


@pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
def test_a_prior_is_counted_from_a_column(folder: Path, people: Path, name: str) -> None:
    columns = list(zip(*(line.split(";") for line in PEOPLE.splitlines()), strict=True))
    if not name.endswith("csv"):
        write_table(folder / name, {column[0]: list(column[1:]) for column in columns})
    for option in ("prior", "counts"):
        run(f"design --{option} {name} --column level --epsilon 0.5 --utility hamming -o out.json")
        stored = json.loads((folder / "out.json").read_text())
        assert stored["inputs"] == ["a", "b", "c"]
        assert stored["metadata"]["prior"]["counts"] == [4, 4, 4]
    found = json.loads(
        run(f"audit m.json --about {name} --column level --secret-column ill --json").stdout
    )
    assert found["about"]["secret"] == "ill"
    assert found["about"]["values"] == ["no", "yes"]
    run(f"solve small.toml --prior {name} --column level -o small.json")
    assert json.loads((folder / "small.json").read_text())["metadata"]["prior"]["counts"] == [4] * 3
    run(f"ledger new book-{name}.npz --prior {name} --column level --people 2")


def test_what_cannot_be_meant_is_refused(folder: Path, people: Path) -> None:
    level, apply = (
        "--prior people.csv --column level",
        "apply m.json people.csv --column level --drop-all",
    )
    for command in (
        *(f"design {options} --epsilon 1 --utility hamming" for options in (
            "--prior people.csv --column nowhere", f"{level} --delimiter ,", f"{level} --delimiter ;;",
            f"{level} --encoding none-such", "--about people.csv --column level",
            "--prior people.csv --secret-column ill",
        )),
        "solve small.toml --column level", "solve small.toml --round-counts",
        "solve small.toml --prior people.csv", "solve small.toml --prior people.csv --column nowhere",
        "solve small.toml --prior people.csv --column level -o people.csv",
        "solve small.toml --mechanism m.json", "solve record-parity-laplace-b2 --prior p.csv",
        f"{apply} --column nowhere -o out.csv",
        f"{apply} --and-mechanism m.json level -o out.csv",
        f"{apply} --and-mechanism m.json ill --assess -o out.csv",
        f"{apply} -o out.csv --encoding utf-16",
    ):  # fmt: skip
        refused(folder, command)


def test_counts_are_priors_and_joint_laws_without_missing_cells(folder: Path, people: Path) -> None:
    write(folder, "cross.csv", "ill,a,b,c\nno,3,3,3\nyes,1,1,1\n")
    by_file = json.loads(run("audit m.json --about cross.csv --json").stdout)
    by_data = json.loads(
        run("audit m.json --about people.csv --column level --secret-column ill --json").stdout
    )
    assert by_file["about"]["level"] == by_data["about"]["level"]
    write(folder, "gaps.csv", "id,level\n1,a\n2,\n3,b\n")
    count, apply = (
        "design --prior gaps.csv --column level --epsilon 1 --utility hamming --json",
        "apply m.json gaps.csv --column level --keep id -o out.csv",
    )
    assert "row 3" in refused(folder, count)
    left, counted = run(f"{count} --missing drop"), run(f"{count} --missing letter")
    assert json.loads(left.stdout)["prior"]["counts"] == [1, 1]
    assert (
        left.stderr == "gaps.csv: 1 of 3 rows (33.3 %) have no value of 'level' and are left out\n"
    )
    assert json.loads(counted.stdout)["mechanism"]["inputs"] == ["a", "b", ""]
    assert "(33.3 %) have no value of 'level' and count as the value ''" in counted.stderr
    assert "row 3" in refused(folder, apply)
    said = run(f"{apply} --missing drop")
    assert "2 rows written" in said.stdout
    assert "(33.3 %) have a missing cell and are left out" in said.stderr


def test_what_stays_in_clear_is_assessed_over_the_rows_that_are_written(folder: Path) -> None:
    Mechanism([[0.5, 0.5], [0.5, 0.5]], ["x", "y"], ["x", "y"]).save(folder / "noise.json")
    clear = "s,b\n" + "x,\n" * 50 + "x,u\n" * 25 + "y,u\n" * 75
    write(folder, "clear.csv", clear)
    write(folder, "more.csv", clear + ",u\n" * 9)  # no secret: left out, and not counted
    asked = "--column s --assess --missing"
    told = []
    for command, rows in ((f"clear.csv {asked} refuse", 150), (f"clear.csv {asked} drop", 150),
                          (f"more.csv {asked} drop", 150)):  # fmt: skip
        said = run(f"apply noise.json {command} -o out.csv").stdout
        assert f"{rows} rows written" in said
        told.append(said.splitlines()[-1])
    assert told[0] == told[1] == told[2]
    assert "0.693147181 nats" in told[0]  # P(x | b missing) / P(x) = 2
    write(folder, "none.csv", "s,b\n,u\n")
    assert "0 rows written" in run(f"apply noise.json none.csv {asked} drop -o out.csv").stdout


def test_standard_input_and_output(folder: Path, people: Path) -> None:
    data = people.read_bytes()
    released = run("apply m.json - --column level --drop-all -o -", data)
    assert released.stdout_bytes.startswith(b"level\n")
    assert len(released.stdout_bytes.splitlines()) == 13
    assert "12 rows written" in released.stderr
    design = "design --prior - --epsilon 0.5 --utility hamming -o -"
    designed = run(design, (folder / "p.csv").read_bytes())
    stored = json.loads(designed.stdout)
    assert stored["inputs"] == ["a", "b", "c"]
    assert "optimal" in designed.stderr
    assert "pml" in run("audit - --prior p.csv", designed.stdout_bytes).stdout
    assert "pml" in run("audit - --prior p.csv", (folder / "m.csv").read_bytes()).stdout
    assert "pml" in run("audit - --prior p.csv", (folder / "m.npz").read_bytes()).stdout
    assert run("solve -", (folder / "small.toml").read_bytes()).exit_code == 0
    answer = "answer - --count level=a,b,c --epsilon 1 -o -"
    assert run(answer, data).stdout_bytes.startswith(b"answer,value,low,high\n")
    write_table(folder / "t.parquet", {"level": ["a", "b"]})
    counted = run(f"{design} --column level", (folder / "t.parquet").read_bytes())
    assert json.loads(counted.stdout)["metadata"]["prior"]["counts"] == [1, 1]
    assert not (folder / "-").exists()


def test_several_columns_go_in_one_pass_and_a_seed_is_warned_of(folder: Path, people: Path) -> None:
    Mechanism([[0.0, 1.0], [1.0, 0.0]], ["no", "yes"], ["no", "yes"]).save(folder / "swap.json")
    apply = "apply m.json people.csv --column level --and-mechanism swap.json ill --keep id"
    apply += " --keep-order -o out.csv"
    assert "for tests only" in run(f"{apply} --seed 1").stderr
    assert "for tests only" not in run(apply).stderr
    rows = [line.split(";") for line in (folder / "out.csv").read_text().splitlines()]
    assert rows[0] == ["id", "level", "ill"]
    assert [row[2] for row in rows[1:]] == ["no" if row % 4 == 0 else "yes" for row in range(12)]


@pytest.mark.parametrize(
    ("design", "column"),
    [("--prior p.csv --utility hamming", "level"), ("--circle 4 --utility absolute", "id")],
)
def test_a_file_that_claims_what_is_false_releases_nothing(
    folder: Path, design: str, column: str
) -> None:
    run(f"design {design} --epsilon 0.5 -o made.json")
    apply = f"apply made.json data.csv --column {column} --drop-all -o out.csv"
    run(apply)
    (folder / "out.csv").unlink()
    text = (folder / "made.json").read_text()
    assert '"epsilon": 0.5' in text
    write(folder, "made.json", text.replace('"epsilon": 0.5', '"epsilon": 0.25'))
    assert "is false" in refused(folder, apply)
    if column == "level":
        refused(
            folder, "apply m.json data.csv --column id --and-mechanism made.json level -o out.csv"
        )


@pytest.mark.parametrize("options", ["", "--keep-order"])
def test_cells_that_are_missing_keep_no_number_in_files(folder: Path, options: str) -> None:
    """Arrow allows any number below a missing cell, and frames of people have the one that was there."""
    number = np.array([1, 2, 987_654_321, 4], np.int64)
    mask = pyarrow.py_buffer(np.packbits(number < 1000, bitorder="little").tobytes())
    hidden = pyarrow.Array.from_buffers(pyarrow.int64(), 4, [mask, pyarrow.py_buffer(number)])
    people = pyarrow.table({"level": ["a", "b", "c", "a"], "income": hidden})
    with pyarrow.ipc.new_file(folder / "hidden.arrow", people.schema) as writer:
        writer.write_table(people)
    cell = number[2:3].tobytes()
    assert cell in (folder / "hidden.arrow").read_bytes()
    for name in ("out.arrow", "out.parquet"):
        run(f"apply m.json hidden.arrow --column level --keep income {options} -o {name}")
        assert cell not in (folder / name).read_bytes()
