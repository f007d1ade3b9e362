"""Problem files that no command takes."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.hostile import problem, refused, write

DEEP = 2_000


def level(epsilon: str) -> str:
    """The line of PML at a level."""
    return f'privacy = {{ name = "pml", epsilon = {epsilon} }}'


def loss(matrix: str) -> str:
    """The line of a loss by its matrix."""
    return f'utility = {{ kind = "expected-loss", matrix = {matrix} }}'


FILES: dict[str, str | bytes] = {
    "empty": "",
    "not text": b"\xff\xfe",
    "no toml": "this is no table",
    "cut short": problem(value="value = "),
    "an array nested too deep": f"a = {'[' * DEEP}{']' * DEEP}\n" + problem(),
    "a table nested too deep": f"a = {'{b=' * DEEP}1{'}' * DEEP}\n" + problem(),
    "a number of 5,000 digits": problem(value=f"value = {'1' * 5000}"),
    "another id": problem(id='id = "large"'),
    "an id that is a number": problem(id="id = 1"),
    "no id": problem(id=""),
    "no title": problem(title=""),
    "no builder": problem(builder=""),
    "another builder": problem(builder='builder = "build"'),
    "no source": problem(source=""),
    "a key too many": problem(title='title = "Small"\ncolour = "red"'),
    "no prior": problem(prior=""),
    "a prior of nothing": problem(prior="prior = {}"),
    "a prior of two kinds": problem(prior="prior = { uniform = 3, counts = [1, 2, 3] }"),
    "a uniform prior on none": problem(prior="prior = { uniform = 0 }"),
    "a uniform prior on -1": problem(prior="prior = { uniform = -1 }"),
    "a uniform prior on text": problem(prior='prior = { uniform = "3" }'),
    "a uniform prior on a fraction": problem(prior="prior = { uniform = 2.5 }"),
    "a uniform prior on truth": problem(prior="prior = { uniform = true }"),
    "a uniform prior on 30,000,000": problem(prior="prior = { uniform = 30000000 }"),
    "a uniform prior on 10^30": problem(prior=f"prior = {{ uniform = {10**30} }}"),
    "shares that do not sum": problem(prior="prior = { probabilities = [0.5, 0.6] }"),
    "a share that is nan": problem(prior="prior = { probabilities = [nan, 0.5] }"),
    "counts of zero": problem(prior="prior = { counts = [0, 1] }"),
    "counts that are infinite": problem(prior="prior = { counts = [inf, 1] }"),
    "labels twice": problem(prior='prior = { uniform = 3, labels = ["a", "a", "b"] }'),
    "labels that are nan": problem(prior="prior = { uniform = 3, labels = [nan, nan, 1] }"),
    "labels too few": problem(prior='prior = { uniform = 3, labels = ["a"] }'),
    "no privacy": problem(privacy=""),
    "privacy of two kinds": problem(privacy='privacy = { name = ["pml", "ldp"], epsilon = 0.5 }'),
    "a negative level": problem(privacy=level("-0.5")),
    "a level that is nan": problem(privacy=level("nan")),
    "a level that is infinite": problem(privacy=level("inf")),
    "a level of text": problem(privacy=level('"0.5"')),
    "a logarithm of 10^999999999": problem(privacy=level('{ log = "1e999999999" }')),
    "a logarithm of 10^-999999999": problem(privacy=level('{ log = "1e-999999999" }')),
    "a logarithm of a long number": problem(privacy=level(f'{{ log = "{"9" * 4000}" }}')),
    "a logarithm of zero": problem(privacy=level('{ log = "0" }')),
    "a logarithm of -1": problem(privacy=level('{ log = "-1" }')),
    "a logarithm of 1/0": problem(privacy=level('{ log = "1/0" }')),
    "a logarithm of text": problem(privacy=level('{ log = "two" }')),
    "a logarithm of nan": problem(privacy=level("{ log = nan }")),
    "a logarithm with an exponent of text": problem(privacy=level('{ log = "1e1e1" }')),
    "a radius that is nan": problem(privacy=level('0.5, over = { kind = "l1-ball", radius = nan }')),
    "a delta of two": problem(privacy=level('0.5, over = { kind = "confidence-ball", delta = 2 }')),
    "no utility": problem(utility=""),
    "another loss": problem(utility='utility = "hemming"'),
    "a loss that is nan": problem(utility=loss("[[nan, 1], [1, 0], [1, 1]]")),
    "no outputs": problem(outputs="outputs = 0"),
    "10^11 outputs": problem(outputs="outputs = 100000000000"),
    "outputs of truth": problem(outputs="outputs = true"),
    "another basis": problem(expected='[expected]\nbasis = "guess"'),
    "another relation": problem(relation='relation = "~"'),
    "no value": problem(value=""),
    "a value that is infinite": problem(value="value = inf"),
    "a value that is -inf": problem(value="value = -inf"),
    "a value that is nan": problem(value="value = nan"),
    "a value past every float": problem(value=f"value = 1{'0' * 400}"),
    "a tolerance of 1e9": problem(rtol="rtol = 1e9"),
    "a tolerance that is infinite": problem(rtol="rtol = inf"),
    "a tolerance that is nan": problem(rtol="rtol = nan"),
    "a tolerance of 2%": problem(rtol="rtol = 0.02"),
    "a negative tolerance": problem(rtol="rtol = -1e-9"),
    "another closed form": problem(rtol='closed_form = "ternary"'),
    "a mechanism whose rows do not sum": problem(rtol="mechanism = [[0.5, 0.6]]"),
}
PROGRAMS: dict[str, str] = {
    "a loss of another shape": problem(utility=loss("[[0, 1]]")),
    "a loss that is huge": problem(utility=loss("[[1e300, 1], [1, 0], [1, 1]]")),
    "outputs twice": problem(outputs='outputs = ["a", "a"]'),
    "an empty list of outputs": problem(outputs="outputs = []"),
}
"""Files that are whole, of programs that cannot be declared."""
QUERIES = {
    "a modulus of 10^30": f'kind = "modular-sum"\nrecords = 2\nmodulus = {10**30}',
    "a modulus of 1e30": 'kind = "modular-sum"\nrecords = 2\nmodulus = 1e30',
    "a modulus of 0": 'kind = "modular-sum"\nrecords = 2\nmodulus = 0',
    "10^8 letters": 'kind = "modular-sum"\nrecords = 2\nmodulus = 2\nletters = 100000000',
    "letters and values": 'kind = "modular-sum"\nrecords = 2\nmodulus = 90000\nletters = 4000',
    "10^12 records": 'kind = "quadratic"\nrecords = 1000000000000',
    "no records": 'kind = "quadratic"\nrecords = 0',
    "a ragged table": 'kind = "explicit"\nplaces = [[0, 1], [1]]\nlabels = [0, 1]',
}


SOLVE, SWEEP = "solve small.toml -o out.json", "sweep small.toml --epsilon 1 -o out.csv"


@pytest.mark.parametrize(
    ("command", "kind"), [*((SOLVE, kind) for kind in FILES), (SWEEP, "cut short"), (SWEEP, "no prior")]
)
def test_a_bad_problem_is_refused_with_its_name(folder: Path, command: str, kind: str) -> None:
    write(folder, "small.toml", FILES[kind])
    assert "small.toml" in refused(folder, command)


@pytest.mark.parametrize("kind", PROGRAMS)
@pytest.mark.parametrize("command", [SOLVE, SWEEP])
def test_a_program_that_cannot_be_declared(folder: Path, command: str, kind: str) -> None:
    write(folder, "small.toml", PROGRAMS[kind])
    refused(folder, command)


@pytest.mark.parametrize("kind", QUERIES)
def test_a_query_that_cannot_be_meant(folder: Path, kind: str) -> None:
    params = (
        "mechanism = { kind = 'symmetric-channel', error = 0.1 }\nentropy = 1.0\n[params.query]\n"
        + QUERIES[kind]
    )
    head = problem(builder='builder = "record_leakage"').partition("prior =")[0]
    write(folder, "small.toml", head + params)
    assert "small.toml" in refused(folder, "solve small.toml")


@pytest.mark.parametrize(
    "name", ["nowhere.toml", "nowhere", "''", ".", "../small", "a" * 300 + ".toml", "p.csv"]
)
def test_a_problem_that_is_not_there(folder: Path, name: str) -> None:
    refused(folder, f"solve {name}")


def test_limits_say_how_far_they_go(folder: Path) -> None:
    write(folder, "small.toml", FILES["a uniform prior on 30,000,000"])
    assert "a file of this length may speak of 10,000 at most" in refused(folder, "solve small.toml")
