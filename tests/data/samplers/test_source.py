"""Generated source code: what it says, how it is read back, and how it draws in languages that are here."""

from __future__ import annotations

import csv
import json
import math
import subprocess
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.samplers import TOOLCHAINS, Toolchain

from pmlopt import PML, Mechanism, Prior, design, leakage_level, load, solve
from pmlopt.data.samplers.languages import LANGUAGES, find_language
from pmlopt.data.samplers.source import SamplerSource, write_source
from pmlopt.data.samplers.table import SamplerTable
from pmlopt.errors import FileFormatError, InputError, MechanismError

HOSTILE = (
    'O\'Hara "quoted" `tick` ${x} $(y) %d \\n',
    "*/ // -- # end\n</script><b>\r\t",
    "é😀\u2028漢 ??/ @NAME@ $pmlopt$",
)
RESPONSE = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])


def random_mechanism(rng: np.random.Generator, letters: int, outputs: int) -> Mechanism:
    """Rows of whole numbers over 2^53, some entries of them 0 and some 2^-53."""
    rows = []
    for _ in range(letters):
        cuts = sorted(int(rng.integers(0, 2**53)) for _ in range(outputs - 1))
        if outputs > 2 and rng.random() < 0.5:
            cuts[1] = min(cuts[0] + int(rng.integers(0, 2)), 2**53)
            cuts.sort()
        ends = [0, *cuts, 2**53]
        rows.append([(b - a) / 2**53 for a, b in pairwise(ends)])
    return Mechanism(
        rows, [f"letter {x}" for x in range(letters)], [f"y{y}" for y in range(outputs)]
    )


def boundary_bits(row: Sequence[int], bits: int) -> list[int]:
    """The bits on both sides of each threshold, and the ends."""
    near = {0, 2**bits - 1, *(c + step for c in row for step in (-1, 0))}
    return sorted(bit for bit in near if 0 <= bit < 2**bits)


def find_outcome(mechanism: Mechanism, row: int, bits: int) -> int:
    """The first outcome whose probabilities, added up as fractions, are above bits over 2^53."""
    total = Fraction(0)
    for place, entry in enumerate(mechanism.matrix[row].tolist()):
        total += Fraction(entry)
        if Fraction(bits, 2**53) < total:
            return place
    raise AssertionError("the row does not sum to one")


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 6))
def test_bits_lead_to_each_outcome_as_often_as_its_probability(seed: int, n: int, m: int) -> None:
    mechanism = random_mechanism(np.random.default_rng(seed), n, m)
    table = SamplerTable.from_mechanism(mechanism)
    assert [[Fraction(count, 2**53) for count in row] for row in table.compute_counts()] == [
        list(map(Fraction, row)) for row in mechanism.matrix.tolist()
    ]


@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_rounded_rows_are_within_a_step_and_keep_zeros(seed: int, bits: int) -> None:
    mechanism = random_mechanism(np.random.default_rng(seed), 3, 4)
    rounded = SamplerTable.from_mechanism(mechanism, bits).to_matrix()
    assert (rounded.sum(axis=1) == 1).all()
    assert np.abs(rounded - mechanism.matrix).max() <= 2.0**-bits
    assert (rounded[mechanism.matrix == 0] == 0).all()


def test_rows_that_are_no_multiples_are_refused_and_rounded_on_request() -> None:
    thirds = Mechanism([[1 / 3, 1 / 3, 1 / 3]])
    with pytest.raises(MechanismError, match="bits=53"):
        SamplerTable.from_mechanism(thirds)
    assert SamplerTable.from_mechanism(thirds, 2).thresholds == ((1, 3, 4),)
    for wrong in (0, 54, 1.0, True):
        with pytest.raises(MechanismError, match="bits must be a whole number from 1 to 53"):
            SamplerTable.from_mechanism(RESPONSE, wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(("labels", "words"), [
    (["a\0", "b"], "NUL"), (["\ud800", "b"], "surrogate"), ([1, "1"], "same as text"),
])  # fmt: skip
def test_labels_that_some_language_cannot_hold_are_refused(labels: list[str], words: str) -> None:
    with pytest.raises(MechanismError, match=words):
        SamplerTable.from_mechanism(Mechanism(np.eye(2), labels))


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_file_is_read_back_and_every_change_is_seen(language: str) -> None:
    mechanism = Mechanism(
        [[0.5, 0.25, 0.25], [0.125, 0.75, 0.125], [0.25, 0.25, 0.5]], HOSTILE, HOSTILE
    )
    chosen = LANGUAGES[language]
    text = write_source(
        SamplerTable.from_mechanism(mechanism), chosen, ["a <= b */ \n -- é"], "two"
    )
    assert text.isascii()
    found = SamplerSource.read(text)
    assert [holds for _, holds, _ in found.compare(mechanism)] == [True, True, True]
    assert found.header["statement"] == ["a <= b */ \n -- é"]
    changed = {
        "threshold": text.replace(str(2**52), str(2**52 + 1), 1),
        "code": text.replace("bits <", "bits <=", 1).replace("bits >=", "bits >", 1),
        "digest": text.replace('"digest":"', '"digest":"0', 1),
    }
    for what, other in changed.items():
        assert other != text, what
        assert False in [holds for _, holds, _ in SamplerSource.read(other).compare(mechanism)], (
            what
        )
    swapped = Mechanism(mechanism.matrix, HOSTILE[::-1], HOSTILE)
    assert False in [holds for _, holds, _ in found.compare(swapped)]


def test_labels_stay_within_their_quotes() -> None:
    for language in LANGUAGES.values():
        for text in HOSTILE:
            written = language.quote(text)
            assert written.isascii()
            assert written.isprintable()
            inner = written.removeprefix("E")[1:-1]
            assert not set(inner) & set("\"'<>`$*/&?@#\n")


@pytest.mark.parametrize("text", ["", "x", "// pmlopt-sampler: {}\n", "// pmlopt-sampler: {]}\n"])
def test_what_was_not_generated_is_refused(text: str) -> None:
    with pytest.raises(FileFormatError):
        SamplerSource.read(text)


def test_a_header_that_lacks_a_part_or_is_later_is_refused() -> None:
    text = write_source(SamplerTable.from_mechanism(RESPONSE), LANGUAGES["js"])
    for old, new in (
        ('"format":"pmlopt sampler 2"', '"format":1'),
        ('"language":"js"', '"language":[]'),
        ('"bits":53', '"bits":null'),
        ('"format":"pmlopt sampler 2"', '"format":"pmlopt sampler 3"'),
    ):
        with pytest.raises(FileFormatError, match=r"lacks a part|this version of pmlopt reads"):
            SamplerSource.read(text.replace(old, new))


def test_languages_are_found_by_name_and_ending_and_others_are_refused() -> None:
    assert find_language("JavaScript").name == "js"
    assert find_language(None, "a.R").name == find_language(None, "a.r").name == "r"
    for name in ("sqlite", "DuckDB"):
        with pytest.raises(InputError, match="no documented generator for cryptography"):
            find_language(name)
    with pytest.raises(InputError, match="did you mean 'python'"):
        find_language("pyton")
    with pytest.raises(InputError, match="names no language"):
        find_language(None, "a.txt")


def test_a_name_is_letters_and_digits(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="begin with a letter"):
        RESPONSE.export(tmp_path / "a.js", name="a; alert(1)")
    assert not (tmp_path / "a.js").exists()


def test_a_result_states_its_requirement_and_the_level_after_rounding(tmp_path: Path) -> None:
    prior = Prior([0.5, 0.3, 0.2], ["a", "b", "c"])
    result = solve(design(prior, PML(0.5), "hamming"))
    result.export(tmp_path / "exact.py")
    result.export(tmp_path / "rounded.py", bits=4)
    exact, rounded = (
        SamplerSource.read((tmp_path / name).read_text()) for name in ("exact.py", "rounded.py")
    )
    assert exact.header["statement"][1] == f"Leakage level: {result.level!r} nats."
    matrix = SamplerTable.from_mechanism(result.mechanism, 4).to_matrix()
    stated = float(rounded.header["statement"][1].split(": ")[1].split()[1])
    # the level by its definition: log of the largest column entry over the column's mean
    law = prior.pmf @ matrix
    own = max(math.log(matrix[:, y].max() / law[y]) for y in range(3) if law[y] > 0)
    assert abs(stated - own) <= 1e-12
    assert stated == leakage_level(prior, Mechanism(matrix, prior.labels))


LOCAL = [
    pytest.param(one, id=one.language)
    for one in TOOLCHAINS.values()
    if one.language in ("js", "mjs", "c", "python")
]


@pytest.mark.parametrize("toolchain", LOCAL)
def test_it_runs_with_the_law_of_the_matrix(toolchain: Toolchain, tmp_path: Path) -> None:
    if not toolchain.is_there:
        pytest.skip(f"there is no {toolchain.tool} here")
    mechanism = Mechanism(
        random_mechanism(np.random.default_rng(7), 3, 3).matrix, HOSTILE, HOSTILE[::-1]
    )
    mechanism.export(tmp_path / toolchain.file, toolchain.language)
    toolchain.prepare(tmp_path)
    table = SamplerTable.from_mechanism(mechanism)
    cases = [(x, bit) for x, row in enumerate(table.thresholds) for bit in boundary_bits(row, 53)]
    labels, outputs, *found, refused = toolchain.ask(tmp_path, [f"b {x} {bit}" for x, bit in cases])
    for line, side in ((labels, HOSTILE), (outputs, HOSTILE[::-1])):
        assert line.split() == ["labels", *(text.encode().hex() for text in side)]
    assert list(map(int, found)) == [find_outcome(mechanism, x, bit) for x, bit in cases]
    assert refused == f"refused {toolchain.refusals}"


def test_all_words_of_eight_bits_have_the_rounded_law(tmp_path: Path) -> None:
    toolchain = TOOLCHAINS["python"]
    mechanism = random_mechanism(np.random.default_rng(8), 3, 5)
    mechanism.export(tmp_path / toolchain.file, bits=8)
    toolchain.prepare(tmp_path)
    asked = [f"b {x} {bit}" for x in range(3) for bit in range(256)]
    found = np.array(toolchain.ask(tmp_path, asked)[2:-1], dtype=int).reshape(3, 256)
    counts = [np.bincount(row, minlength=5).tolist() for row in found]
    assert counts == (SamplerTable.from_mechanism(mechanism, 8).to_matrix() * 256).tolist()


def test_a_saved_result_exports_the_same_file(tmp_path: Path) -> None:
    result = solve(design([0.5, 0.5], PML(0.3), "hamming"))
    result.save(tmp_path / "result.json")
    result.export(tmp_path / "one.rs")
    load(tmp_path / "result.json").export(tmp_path / "two.rs")
    assert (tmp_path / "one.rs").read_bytes() == (tmp_path / "two.rs").read_bytes()
    header = SamplerSource.read((tmp_path / "one.rs").read_text()).header
    assert json.dumps(header).count(SamplerTable.from_mechanism(result.mechanism).digest) == 1


@pytest.mark.skipif(not TOOLCHAINS["r"].is_there, reason="R is not installed")
def test_a_column_of_a_data_frame_is_released_in_r(tmp_path: Path) -> None:
    letters = ["no", "yes", 'O\'Hara "é"', "100000"]
    turned = Mechanism(np.roll(np.eye(4), 1, axis=1), letters, letters)
    turned.export(tmp_path / "answer.R", name="turn")
    column = [letters[k % 4] for k in range(11)]
    with (tmp_path / "people.csv").open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([("id", "answer"), *enumerate(column)])
    (tmp_path / "run.R").write_text(
        """
        source("answer.R", encoding = "UTF-8")
        people <- read.csv("people.csv", encoding = "UTF-8")
        for (kind in list(as.character, as.factor)) {
          people$released <- pmlopt_turn$release(kind(people$answer))
          cat(charToRaw(enc2utf8(paste(people$released, collapse = "|"))), "\\n")
        }
        cat(pmlopt_turn$release(c(1e5, 100000L)), "\\n")
        empty <- people[people$id < 0, ]
        empty$released <- pmlopt_turn$release(empty$answer)
        people$answer[3] <- "other"
        cat(nrow(empty), class(try(pmlopt_turn$release(people$answer), silent = TRUE)), "\\n")
        people$answer[3] <- NA
        cat(class(try(pmlopt_turn$release(people$answer), silent = TRUE)), "\\n")
        """,
        "utf-8",
    )
    run = subprocess.run(
        ["Rscript", "run.R"], cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", check=True
    )  # fmt: skip
    *columns, numbers, unknown, missing = run.stdout.strip().splitlines()
    due = "|".join(letters[(k + 1) % 4] for k in range(11)).encode()
    assert [bytes.fromhex("".join(line.split())) for line in columns] == [due, due]
    assert numbers.split() == ["no", "no"]
    assert unknown.split() == ["0", "try-error"]
    assert missing.split() == ["try-error"]
