"""Generated samplers of every language that the machine can run, against the matrix.

For each language: 10,000 patterns of bits with all boundaries, against sums of fractions; all words of 8
bits of a rounded mechanism, whose counts must be the matrix; a chi-square test of draws from the platform's
own generator (its p-value is below .001 once in a thousand runs). And random mechanisms, with zeros, entries
of 2^-53 and labels that try to leave their quotes: written in every language, read back, changed in one
place and refused, and compiled where there is a compiler.

    python benchmarks/samplers.py [--mechanisms 200] [--draws 1000000] [--compiled 20] [--out FOLDER]
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from common import report, suite_parser
from oracles.samplers import (
    TOOLCHAINS,
    Toolchain,
    serve_postgres,
    write_postgres_questions,
)
from scipy.stats import chi2, chisquare

from pmlopt import Mechanism
from pmlopt.core.display import get_figure_class
from pmlopt.data.samplers.languages import LANGUAGES
from pmlopt.data.samplers.source import SamplerSource, write_source
from pmlopt.data.samplers.table import SamplerTable
from pmlopt.errors import FileFormatError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEAD = (
    "language",
    "patterns",
    "wrong",
    "words of 8 bits",
    "wrong counts",
    "draws",
    "p-value",
    "refused",
)
PIECES = ("'", '"', "\\", "\n", "\r", "</script>", "*/", "//", "--", "#", "${x}", "$pmlopt$", "@NAME@",
          "%s", "é", "😀", "\u2028", "漢", "\t", "`", "??/",
          "a", "B", " ", "0", ";", "{", "}", "\x7f", "\x1b")  # fmt: skip


def draw_labels(rng: np.random.Generator, size: int) -> list[str]:
    """Distinct labels of characters that mean something to some language."""
    found: dict[str, None] = {}
    while len(found) < size:
        found["".join(rng.choice(PIECES, size=int(rng.integers(0, 6))))] = None
    return list(found)


def draw_mechanism(rng: np.random.Generator, letters: int, outputs: int) -> Mechanism:
    """Rows of whole numbers over 2^53, with zeros and entries of 2^-53."""
    rows = []
    for _ in range(letters):
        cuts = np.sort(rng.integers(0, 2**53, size=outputs - 1, endpoint=True)).tolist()
        for place in range(1, len(cuts)):
            if rng.random() < 0.3:
                cuts[place] = min(cuts[place - 1] + int(rng.integers(0, 2)), 2**53)
        ends = [0, *sorted(cuts), 2**53]
        rows.append(np.diff(np.array(ends, dtype=object)).astype(float) / 2.0**53)
    return Mechanism(rows, draw_labels(rng, letters), draw_labels(rng, outputs))


def draw_patterns(
    rng: np.random.Generator, table: SamplerTable, count: int
) -> list[tuple[int, int]]:
    """Rows and bits: both sides of every threshold, the ends, and random ones up to a number."""
    cases = {
        (x, bit)
        for x, row in enumerate(table.thresholds)
        for bit in (0, 2**table.bits - 1, *(c + step for c in row for step in (-1, 0, 1)))
        if 0 <= bit < 2**table.bits
    }
    while len(cases) < count:
        cases.add((int(rng.integers(len(table.inputs))), int(rng.integers(2**table.bits))))
    return sorted(cases)


def find_outcomes(matrix: np.ndarray, cases: Sequence[tuple[int, int]], bits: int) -> list[int]:
    """By fractions: the first outcome whose probabilities add up to more than the bits over 2^B."""
    sums = [list(accumulate(map(Fraction, row))) for row in matrix.tolist()]
    return [
        next(y for y, total in enumerate(sums[x]) if Fraction(bit, 2**bits) < total)
        for x, bit in cases
    ]


def compare_language(toolchain: Toolchain, draws: int, patterns: int, seed: int) -> tuple[str, ...]:
    """One row of the table: the patterns, the words of 8 bits, and the draws."""
    rng = np.random.default_rng(seed)
    mechanism = draw_mechanism(rng, 7, 9)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        mechanism.export(folder / toolchain.file, toolchain.language)
        toolchain.prepare(folder)
        cases = draw_patterns(rng, SamplerTable.from_mechanism(mechanism), patterns)
        asked = [f"b {x} {bit}" for x, bit in cases]
        drawn_rows = range(len(mechanism.inputs))
        each = draws // len(mechanism.inputs)
        answers = toolchain.ask(folder, [*asked, *(f"d {x} {each}" for x in drawn_rows)])
    labels = [
        "labels " + " ".join(str(t).encode().hex() for t in side)
        for side in (mechanism.inputs, mechanism.outputs)
    ]
    wrong = sum(a.split() != b.split() for a, b in zip(answers[:2], labels, strict=True))
    expected = find_outcomes(mechanism.matrix, cases, 53)
    found = list(map(int, answers[2 : 2 + len(cases)]))
    wrong += sum(a != b for a, b in zip(found, expected, strict=True))
    p_value, impossible = test_draws(mechanism, answers[2 + len(cases) : -1], each)
    words, wrong_counts = compare_words(toolchain, draw_mechanism(rng, 5, 6))
    refused = f"{answers[-1].split()[1]} of {toolchain.refusals}"
    return (
        toolchain.language, str(len(cases)), str(wrong + impossible), str(words), str(wrong_counts),
        str(each * len(mechanism.inputs)), f"{p_value:.3f}", refused,
    )  # fmt: skip


def test_draws(mechanism: Mechanism, lines: Sequence[str], each: int) -> tuple[float, int]:
    """The p-value of all rows together, and how many draws were of probability zero."""
    counts = np.array([line.split() for line in lines], dtype=float)
    expected = each * mechanism.matrix
    impossible = int(counts[expected == 0].sum())
    common = expected >= 5
    # what is too rare for the test goes into one cell of each row
    rest = np.where(common, 0, counts).sum(axis=1), np.where(common, 0, expected).sum(axis=1)
    statistic, cells = 0.0, 0
    for x in range(len(counts)):
        seen = [*counts[x, common[x]], rest[0][x]]
        due = [*expected[x, common[x]], rest[1][x]]
        if due[-1] < 5:
            seen, due = seen[:-1], [d * sum(seen[:-1]) / sum(due[:-1]) for d in due[:-1]]
        statistic += float(chisquare(seen, due).statistic)
        cells += len(seen) - 1
    return float(chi2.sf(statistic, cells)), impossible


def compare_words(toolchain: Toolchain, mechanism: Mechanism) -> tuple[int, int]:
    """All words of 8 bits in every row: how many, and how many counts differ from the matrix."""
    letters, outputs = mechanism.shape
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        mechanism.export(folder / toolchain.file, toolchain.language, bits=8)
        toolchain.prepare(folder)
        lines = [f"b {x} {bit}" for x in range(letters) for bit in range(256)]
        found = np.array(toolchain.ask(folder, lines)[2:-1], dtype=int).reshape(letters, 256)
    counts = np.array([np.bincount(row, minlength=outputs) for row in found])
    return len(lines), int((counts != round_to_bytes(mechanism)).sum())


def round_to_bytes(mechanism: Mechanism) -> np.ndarray:
    """Of 256 words those of each outcome: sums rounded to 256ths, by fractions."""
    sums = [
        [round(total * 256) for total in accumulate(map(Fraction, row))]
        for row in mechanism.matrix.tolist()
    ]
    return np.diff(np.array(sums), axis=1, prepend=0)


def compare_postgres(draws: int, patterns: int, seed: int) -> tuple[str, ...] | None:
    """The row of PostgreSQL; None where there is no server."""
    rng = np.random.default_rng(seed)
    mechanism, small = draw_mechanism(rng, 7, 9), draw_mechanism(rng, 5, 6)
    with serve_postgres() as ask:
        if ask is None:
            return None
        cases = draw_patterns(rng, SamplerTable.from_mechanism(mechanism), patterns)
        expected = find_outcomes(mechanism.matrix, cases, 53)
        known = [str(text).encode().hex() for text in mechanism.outputs]
        ask(write_source(SamplerTable.from_mechanism(mechanism), LANGUAGES["sql"]))
        answers = ask(write_postgres_questions(list(map(str, mechanism.inputs)), cases))
        wrong = sum(a != known[b] for a, b in zip(answers, expected, strict=True))
        each = draws // len(mechanism.inputs)
        lines = []
        for text in mechanism.inputs:
            letter = f"convert_from('\\x{str(text).encode().hex()}','UTF8')"
            rows = ask(
                f"SELECT encode(convert_to(pmlopt_release({letter}),'UTF8'),'hex') AS y, count(*) "
                f"FROM generate_series(1,{each}) GROUP BY y;"
            )
            counts = dict(row.split("|") for row in rows)
            lines.append(" ".join(counts.get(key, "0") for key in known))
        p_value, impossible = test_draws(mechanism, lines, each)
        ask(write_source(SamplerTable.from_mechanism(small, 8), LANGUAGES["sql"]))
        words = [(x, bit) for x in range(5) for bit in range(256)]
        keys = [str(text).encode().hex() for text in small.outputs]
        found = np.array(
            [
                keys.index(a)
                for a in ask(write_postgres_questions(list(map(str, small.inputs)), words))
            ]
        )
        counted = np.array([np.bincount(row, minlength=6) for row in found.reshape(5, 256)])
        wrong_counts = int((counted != round_to_bytes(small)).sum())
        refused = 0
        for value in ("'no such letter'", "NULL"):
            try:
                ask(f"SELECT pmlopt_release({value});")
            except RuntimeError:
                refused += 1
    return (
        "sql", str(len(cases)), str(wrong + impossible), str(len(words)), str(wrong_counts),
        str(each * 7), f"{p_value:.3f}", f"{refused} of 2",
    )  # fmt: skip


def compare_random(mechanisms: int, compiled: int, seed: int) -> tuple[int, int, int]:
    """Random mechanisms in every language: files that differ from theirs, changes accepted, builds failed."""
    rng = np.random.default_rng(seed)
    differing = accepted = failed = 0
    for number in range(mechanisms):
        mechanism = draw_mechanism(rng, int(rng.integers(1, 65)), int(rng.integers(1, 65)))
        table = SamplerTable.from_mechanism(mechanism)
        for language in LANGUAGES.values():
            text = write_source(table, language)
            parts = SamplerSource.read(text).compare(mechanism)
            differing += not all(holds for _, holds, _ in parts)
            place = int(rng.integers(len(text)))
            other = text[:place] + ("x" if text[place] != "x" else "y") + text[place + 1 :]
            accepted += not is_refused(other, mechanism)
        if number < compiled:
            failed += sum(not is_built(toolchain, mechanism) for toolchain in TOOLCHAINS.values())
    return differing, accepted, failed


def is_refused(text: str, mechanism: Mechanism) -> bool:
    """Whether a changed file is no sampler, or is seen to differ."""
    try:
        return False in [holds for _, holds, _ in SamplerSource.read(text).compare(mechanism)]
    except FileFormatError:
        return True


def is_built(toolchain: Toolchain, mechanism: Mechanism) -> bool:
    """Whether a language runs it and knows its labels; those that take half a minute are left out."""
    if not toolchain.is_there or toolchain.language == "kotlin":
        return True
    with tempfile.TemporaryDirectory() as place:
        mechanism.export(Path(place) / toolchain.file, toolchain.language)
        toolchain.prepare(Path(place))
        answers = toolchain.ask(Path(place), ["b 0 0"])
    sides = (mechanism.inputs, mechanism.outputs)
    return [line.split()[1:] for line in answers[:2]] == [
        [str(text).encode().hex() for text in side if text] for side in sides
    ]


def draw_p_values(rows: Sequence[tuple[str, ...]]) -> Figure:
    """The p-values of the draws, with the line below which one fails."""
    figure = get_figure_class()(figsize=(6, 3.5), layout="constrained")
    axes = figure.subplots()
    axes.plot([row[0] for row in rows], [float(row[6]) for row in rows], "o")
    axes.axhline(1e-3, color="black", linestyle=":")
    axes.set(title="Chi-square test of the draws of each language", ylabel="p-value", ylim=(0, 1))
    return figure


def main(argv: Sequence[str] | None = None) -> None:
    """Compare all languages, and exit with 1 where one draws from another law."""
    parser = suite_parser(__doc__)
    parser.add_argument("--mechanisms", type=int, default=200)
    parser.add_argument("--draws", type=int, default=1_000_000)
    parser.add_argument("--patterns", type=int, default=10_000)
    parser.add_argument("--compiled", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(argv)
    if asked.quick:
        asked.mechanisms, asked.draws, asked.patterns, asked.compiled = 5, 7_000, 300, 1
    rows = [
        compare_language(one, asked.draws, asked.patterns, asked.seed)
        for one in TOOLCHAINS.values()
        if one.is_there
    ]
    own = compare_postgres(asked.draws, asked.patterns, asked.seed)
    rows += [own] if own is not None else []
    missing = [name for name in LANGUAGES if name not in {row[0] for row in rows}]
    differing, accepted, failed = compare_random(asked.mechanisms, asked.compiled, asked.seed)
    report(asked.out, "samplers", HEAD, rows)
    if asked.out is not None:
        draw_p_values(rows).savefig(asked.out / "samplers.png")
    print(f"\nnot run here: {', '.join(missing) or 'none'}")
    print(
        f"{asked.mechanisms} random mechanisms in {len(LANGUAGES)} languages: {differing} files differ from "
        f"theirs, {accepted} changes were accepted, {failed} did not run"
    )
    bad = [row for row in rows if row[2] != "0" or row[4] != "0" or float(row[6]) < 1e-3]
    if bad or differing or accepted or failed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
