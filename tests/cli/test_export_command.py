"""`pmlopt export` writes source code, and `pmlopt verify --of` compares it with its mechanism."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pmlopt import PML, Mechanism, Prior, design, solve
from pmlopt.cli import main


def called(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(one) for one in arguments])


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "mechanism.json"
    solve(design(Prior([0.5, 0.3, 0.2], ["a", "b", "c"]), PML(0.4), "hamming")).save(path)
    return path


def test_a_file_is_written_and_found_to_be_the_mechanism(saved: Path, tmp_path: Path) -> None:
    for arguments in (
        ("-o", tmp_path / "a.rs"),
        ("-o", tmp_path / "a.mjs"),
        ("-o", tmp_path / "b.mjs", "--to", "js"),
        ("-o", tmp_path / "a.txt", "--to", "Kotlin"),
    ):
        assert called("export", saved, *arguments).exit_code == 0
        found = called("verify", arguments[1], "--of", saved, "--json")
        if arguments[1].suffix == ".txt":
            assert json.loads(found.output)["language"] == "kotlin"
        assert found.exit_code == 0, found.output
        assert {part["part"] for part in json.loads(found.output)["parts"]} == {
            "thresholds", "digest", "code", "statement",
        }  # fmt: skip


def test_changed_code_or_a_changed_statement_is_false(saved: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.js"
    assert called("export", saved, "-o", path).exit_code == 0
    text = path.read_text()
    for old, new in (
        ("return outputs[", "return inputs["),
        ("Leakage level: 0.", "Leakage level: 0.0"),
    ):
        assert old in text
        path.write_text(text.replace(old, new))
        found = called("verify", path, "--of", saved)
        assert found.exit_code == 1, found.output
        assert "FALSE" in found.output


def test_another_mechanism_is_false(saved: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    Mechanism([[0.75, 0.25], [0.25, 0.75]], ["a", "b"], ["x", "y"]).save(other)
    assert called("export", saved, "-o", tmp_path / "a.py").exit_code == 0
    assert called("verify", tmp_path / "a.py", "--of", other).exit_code == 1


@pytest.mark.parametrize(("arguments", "words"), [
    (("--to", "sqlite"), "no documented generator"),
    (("--to", "cobol"), "is not known"),
    (("--bits", "60"), "from 1 to 53"),
    (("--name", "1a"), "begin with a letter"),
    (("--decode", "--bits", "8"), "leave out --bits"),
])  # fmt: skip
def test_what_cannot_be_written_leaves_no_file(
    arguments: tuple[str, ...], words: str, saved: Path, tmp_path: Path
) -> None:
    found = called("export", saved, "-o", tmp_path / "a.js", *arguments)
    assert found.exit_code == 2
    assert words in found.output
    assert not (tmp_path / "a.js").exists()


def test_source_code_needs_its_mechanism(saved: Path, tmp_path: Path) -> None:
    assert called("export", saved, "-o", tmp_path / "a.js").exit_code == 0
    found = called("verify", tmp_path / "a.js")
    assert found.exit_code == 2
    assert "--of MECHANISM" in found.output


def test_thirds_are_rounded_on_request_only(tmp_path: Path) -> None:
    thirds = tmp_path / "thirds.json"
    Mechanism([[1 / 3, 2 / 3], [2 / 3, 1 / 3]], ["a", "b"], ["x", "y"]).save(thirds)
    refused = called("export", thirds, "-o", tmp_path / "a.js")
    assert refused.exit_code == 2
    assert "bits=53" in refused.output
    assert called("export", thirds, "-o", tmp_path / "a.js", "--bits", "53").exit_code == 0
    assert called("verify", tmp_path / "a.js", "--of", thirds).exit_code == 0


def test_a_decoder_is_written(tmp_path: Path) -> None:
    path = tmp_path / "mechanism.csv"
    Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"]).save(path)
    assert called("export", path, "-o", tmp_path / "d.sql", "--decode").exit_code == 0
    assert "pmlopt_estimate" in (tmp_path / "d.sql").read_text()


@pytest.mark.parametrize("platform", ["xlsform", "spreadsheet"])
def test_a_workbook_is_written_with_a_warning_and_read_back(
    platform: str, saved: Path, tmp_path: Path
) -> None:
    path = tmp_path / "a.xlsx"
    found = called("export", saved, "--to", platform, "-o", path, "--bits", "9")
    assert found.exit_code == 0, found.output
    assert "predictable, and unfit for secrets" in found.stderr
    assert "Levels after rounding, computed again: pml 0." in found.stdout
    assert called("verify", path, "--of", saved).exit_code == 0
    without = called("verify", path)
    assert without.exit_code == 2
    assert "--of MECHANISM" in without.output
    other = tmp_path / "other.json"
    solve(design(Prior([0.5, 0.3, 0.2], ["a", "b", "c"]), PML(0.3), "hamming")).save(other)
    assert called("verify", path, "--of", other).exit_code == 1
    # the level after rounding is above the one before
    level = found.stdout.split("pml 0.")[-1].split()[0]
    refused = called(
        "export", saved, "--to", platform, "-o", tmp_path / "b.xlsx", "--bits", "9", "--max-level",
        f"{float('0.' + level) - 1e-6}",
    )  # fmt: skip
    assert refused.exit_code == 2
    assert "above the largest one" in refused.output
    assert not (tmp_path / "b.xlsx").exists()


def test_a_largest_level_needs_a_prior_and_a_sampler(saved: Path, tmp_path: Path) -> None:
    matrix = tmp_path / "m.csv"
    Mechanism([[0.75, 0.25], [0.25, 0.75]], ["a", "b"], ["x", "y"]).save(matrix)
    for arguments in ((matrix, "--to", "odk"), (saved, "--decode", "--to", "js")):
        found = called("export", *arguments, "-o", tmp_path / "a.xlsx", "--max-level", "1")
        assert found.exit_code == 2
        assert "--max-level" in found.output
    decoded = called("export", matrix, "-o", tmp_path / "d.xlsx", "--to", "xlsform", "--decode")
    assert decoded.exit_code == 2
    assert "xlsform" in decoded.output
