"""What works where few packages are installed: designs, certificates, files; the rest names the package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

MISSING = (
    "filelock", "narwhals", "pyarrow", "rich", "threadpoolctl", "matplotlib", "openpyxl", "pandas", "polars",
    "sklearn", "opendp", "duckdb", "dask",
)  # fmt: skip
"""The packages that the toolkit does without."""

START = (
    f"import sys\nsys.modules.update(dict.fromkeys({MISSING!r}))  # as if they were not installed\n"
)

DESIGNS = """
import pmlopt
from pmlopt.constraints import Invariant
from pmlopt import LDP, PML, MutualInformation, Prior, design, solve, verify_file
prior = Prior([0.5, 0.3, 0.2], ["a", "b", "c"])
channel = pmlopt.Mechanism([[0.6, 0.4], [0.4, 0.6], [0.5, 0.5]], prior.labels)
programs = [
    design(prior, PML(0.5), "hamming"),
    design(prior, LDP(0.5), "hamming", constraints=[Invariant()]),
    design(prior, PML(0.5), MutualInformation()),
    pmlopt.least_leakage(prior, "hamming", expected=0.3),
    pmlopt.envelope(prior, channel, 0.1),
]
for number, program in enumerate(programs):
    result = solve(program)
    assert result.status.value == "optimal" and result.certificate.verify(), result
    for ending in ("json", "npz"):
        result.save(f"{number}.{ending}")
        assert verify_file(f"{number}.{ending}").holds
        assert pmlopt.load(f"{number}.{ending}").value == result.value
for name in ("highs", "clarabel"):
    assert abs(solve(programs[0], name).value - solve(programs[0]).value) < 1e-7
assert abs(programs[0].problem.solve() - solve(programs[0]).value) < 1e-6
pmlopt.Mechanism.load("0.json").save("m.csv")
assert pmlopt.Mechanism.load("m.csv").matrix.shape == (3, 3)
swept = pmlopt.sweep(lambda privacy: design(prior, privacy, "hamming"), {"privacy": [PML(0.1), PML(0.5)]})
assert len(swept.rows) == 2
"""

COMMANDS = """
from pmlopt.cli import main
def run(*arguments):
    try:
        main(arguments)
    except SystemExit as ended:
        assert not ended.code, arguments
run("design", "--prior", "four.csv", "--epsilon", "0.5", "--utility", "absolute", "-o", "m.json")
run("verify", "m.json")
run("--help")
"""


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", START + code], capture_output=True, text=True, cwd=folder
    )


def test_designs_certificates_and_files_need_few_packages(tmp_path: Path) -> None:
    ended = run(DESIGNS, tmp_path)
    assert ended.returncode == 0, ended.stderr


def test_commands_on_designs_need_few_packages(tmp_path: Path) -> None:
    (tmp_path / "four.csv").write_text("letter,count\n0,4\n1,3\n2,2\n3,1\n")
    ended = run(COMMANDS, tmp_path)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize(
    ("code", "package"),
    [
        ("pmlopt.closed_forms.randomized_response(3, 1.0).save('m.parquet')", "pyarrow"),
        ("pmlopt.Mechanism.load('m.parquet')", "pyarrow"),
        ("pmlopt.Mechanism([[0.5, 0.5]]).save('m.xlsx')", "openpyxl"),
        ("pmlopt.tables.column_counts('people.csv', 'c')", "narwhals"),
        ("pmlopt.tables.column_counts({'c': [1, 2]}, 'c')", "narwhals"),
        ("pmlopt.tables.write_table('out.csv', {'c': [1, 2]})", "narwhals"),
        ("pmlopt.Ledger([0.5, 0.5]).save('l.npz')", "filelock"),
        ("pmlopt.closed_forms.randomized_response(3, 1.0).plot()", "matplotlib"),
    ],
)
def test_what_needs_more_names_the_package(code: str, package: str, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("c\n0\n1\n")
    (tmp_path / "m.parquet").write_bytes(b"PAR1")
    caught = f"""
import pmlopt
try:
    {code}
except pmlopt.errors.MissingExtraError as missing:
    print(missing)
"""
    ended = run(caught, tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert package in ended.stdout
    assert "install" in ended.stdout
