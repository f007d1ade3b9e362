"""The generated code in a server of PostgreSQL of its own, where one can be started."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from oracles.samplers import serve_postgres, write_postgres_questions

from pmlopt import Mechanism
from pmlopt.data.samplers.languages import LANGUAGES
from pmlopt.data.samplers.source import write_source
from pmlopt.data.samplers.table import SamplerTable
from pmlopt.estimation import export_decoder

ROWS = 10_000
RESPONSE = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])
Ask = Callable[[str], list[str]]


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    """A function from SQL to the lines of its answer."""
    with serve_postgres() as answers:
        if answers is None:
            if os.environ.get("PMLOPT_NEEDS_POSTGRES"):
                pytest.fail("no server of PostgreSQL can be started here")
            pytest.skip("there is no server of PostgreSQL here")
        answers(write_source(SamplerTable.from_mechanism(RESPONSE), LANGUAGES["sql"]))
        answers(
            "CREATE TABLE people AS SELECT i AS id, CASE WHEN i % 2 = 0 THEN 'no' ELSE 'yes' END AS answer "
            f"FROM generate_series(1, {ROWS}) i; ANALYZE people;"
        )
        yield answers


def count_kept(ask: Ask, rows: str) -> list[float]:
    """The shares of the rows of "no" and of "yes" whose outcome is their answer."""
    drawn = f"({rows}) AS drawn(answer, y)"
    lines = ask(f"SELECT avg((answer = y)::int) FROM {drawn} GROUP BY answer ORDER BY answer;")
    return list(map(float, lines))


LATERAL = "SELECT p.answer, y FROM people p CROSS JOIN LATERAL (SELECT pmlopt_release({}) AS y) d"
SAFE = {
    "column": "SELECT answer, pmlopt_release(answer) FROM people",
    "table": "SELECT answer, y FROM released",
    "row key": LATERAL.format("p.answer, p.id"),
    "whole row": LATERAL.format("p.answer, p"),
    "two keys": LATERAL.format("p.answer, ROW(p.id / 100, p.id % 100)"),
}


@pytest.mark.parametrize("form", SAFE)
def test_each_row_has_its_own_draw(form: str, ask: Ask) -> None:
    ask(
        "DROP TABLE IF EXISTS released; "
        "CREATE TABLE released AS SELECT answer, pmlopt_release(answer) AS y FROM people "
        "ORDER BY gen_random_uuid();"
    )
    # off by .06 with probability 2 exp(-2 * 5,000 * .06^2) each, below 1e-15, by Hoeffding's inequality
    assert count_kept(ask, SAFE[form]) == pytest.approx([0.75, 0.75], abs=0.06)


def test_a_cache_of_the_server_gives_one_draw_to_all_rows_of_a_value_and_none_with_a_key(
    ask: Ask,
) -> None:
    alone = LATERAL.format("p.answer")
    if not any("Memoize" in line for line in ask(f"EXPLAIN {alone};")):
        pytest.skip("this server does not cache here")
    assert set(count_kept(ask, alone)) <= {0.0, 1.0}  # why the key is there
    # all of 5,000 draws are alike with probability .75^5,000
    assert len(set(ask(f"{LATERAL.format('p.answer, p.id')};"))) == 4


def test_a_row_without_a_key_is_refused(ask: Ask) -> None:
    for key in ("NULL::integer", "NULL::text", "ROW(NULL, NULL)"):
        with pytest.raises(RuntimeError, match="a row without a key"):
            ask(f"SELECT pmlopt_release('yes', {key});")


@pytest.fixture(scope="module")
def collations(ask: Ask) -> Ask:
    """The same, with columns in which letters are equal that differ by case or by an accent."""
    for name, level in (("by_case", 2), ("by_accent", 1)):
        form = f"provider = icu, locale = 'und-u-ks-level{level}', deterministic = false"
        ask(f"CREATE COLLATION {name} ({form});")
    return ask


def test_letters_are_compared_by_bytes_whatever_the_collation(collations: Ask) -> None:
    letters = ["yes", "YES", "e", "é"]
    turned = Mechanism(np.roll(np.eye(4), 1, axis=1), letters, letters)
    collations(write_source(SamplerTable.from_mechanism(turned), LANGUAGES["sql"], name="turn"))
    for name in ("by_case", "by_accent"):
        for letter, outcome in zip(letters, [*letters[1:], letters[0]], strict=True):
            for more in ("", ", 1"):
                call = f"pmlopt_turn_release('{letter}' COLLATE {name}{more})"
                assert collations(f"SELECT {call};") == [outcome]
            bits = f"SELECT pmlopt_turn_release_from_bits(0, '{letter}' COLLATE {name});"
            assert collations(bits) == [outcome]
        for other in ("Yes", "E", "è"):
            with pytest.raises(RuntimeError, match="not one of the letters"):
                collations(f"SELECT pmlopt_turn_release('{other}' COLLATE {name});")


def test_a_decoder_counts_by_bytes_whatever_the_collation(collations: Ask, tmp_path: Path) -> None:
    letters = ["yes", "YES"]
    same = Mechanism(np.eye(2), letters, letters)
    export_decoder(same, tmp_path / "decoder.sql", name="case")
    collations((tmp_path / "decoder.sql").read_text())
    column = "ARRAY['yes', 'YES', 'YES', 'YES'] COLLATE by_case"
    found = collations(f"SELECT letter, frequency FROM pmlopt_case_estimate({column});")
    assert found == ["yes|0.25", "YES|0.75"]
    with pytest.raises(RuntimeError, match="not one of the outcomes"):
        collations("SELECT pmlopt_case_estimate(ARRAY['Yes'] COLLATE by_case);")


def test_truth_values_are_letters_and_other_values_are_refused(ask: Ask) -> None:
    same = Mechanism(np.eye(3), [False, True, "true"], ["f", "t", "text"])
    ask(write_source(SamplerTable.from_mechanism(same), LANGUAGES["sql"], name="truth"))
    calls = {
        "false": "f",
        "true": "t",
        "1 = 1": "t",
        "true, 7": "t",
        "'True'": "t",
        "'true'": "text",
    }
    for call, outcome in calls.items():
        assert ask(f"SELECT pmlopt_truth_release({call});") == [outcome]
    for wrong in ("NULL", "NULL::boolean", "NULL::text", "NULL::boolean, 7", "'t'", "1", "0.3"):
        with pytest.raises(RuntimeError, match=r"not one of the letters|does not exist"):
            ask(f"SELECT pmlopt_truth_release({wrong});")


def test_bits_lead_to_the_outcomes_of_the_matrix(ask: Ask) -> None:
    labels = ['O\'Hara "q" \\n', "*/ $pmlopt$ --", "é😀\u2028漢 @NAME@"]
    law = Mechanism([[0.5, 0.25, 0.25], [0.125, 0.75, 0.125], [0.25, 0, 0.75]], labels, labels)
    ask(write_source(SamplerTable.from_mechanism(law, 3), LANGUAGES["sql"], name="eight"))
    cases = [(row, bits) for row in range(3) for bits in range(8)]
    asked = write_postgres_questions(labels, cases).replace(
        "pmlopt_release", "pmlopt_eight_release"
    )
    found = [bytes.fromhex(line).decode() for line in ask(asked)]
    counts = [[found[8 * row :][:8].count(label) / 8 for label in labels] for row in range(3)]
    assert counts == law.matrix.tolist()


def test_draws_inside_of_a_query_are_as_the_table_of_engines_states(ask: Ask) -> None:
    """Each statement ends when PostgreSQL does otherwise: then the table of docs/engines.md changes."""
    assert ask("SELECT count(DISTINCT (SELECT random())) FROM people;") == ["1"]
    assert ask("SELECT count(DISTINCT r) FROM people, LATERAL (SELECT random() AS r) d;") == ["1"]
    drawn = [float(one) for one in ask("SELECT random() FROM people ORDER BY random();")]
    assert drawn == sorted(drawn)
    # one draw is between with probability .25, two with .75 * .5: off by .06 as above
    (share,) = ask("SELECT avg((random() * 4 BETWEEN 1 AND 2)::int) FROM people;")
    assert float(share) == pytest.approx(0.375, abs=0.06)
