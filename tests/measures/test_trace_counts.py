"""The leakage of deterministic programs from counts of their traces, against programs that are listed."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmlopt import envelope, leakage_of_counts, measures, solve
from pmlopt.errors import InputError, MechanismError, PrivacyError
from pmlopt.measures import failure_probability, leakage_of_inputs
from pmlopt.measures.trace_counts import exceeds_level

PROGRAMS = 1_000
MAX_INPUT_BITS = 16


def draw_program(rng: np.random.Generator) -> np.ndarray:
    """Draw a program as the trace of each of its inputs, of which there are up to 2^16."""
    size = int(2 ** rng.uniform(0, MAX_INPUT_BITS))
    kinds = min(size, int(2 ** rng.uniform(0, 10)))
    law = rng.dirichlet(np.full(kinds, 10 ** rng.uniform(-1.5, 1)))
    return rng.choice(kinds, size, p=law)


def tail_by_inputs(leakages: np.ndarray, level: float, inputs: int) -> Fraction:
    return Fraction(int((leakages > level).sum()), inputs)


@pytest.mark.parametrize("block", range(10))
def test_it_is_what_listed_programs_leak(block: int) -> None:
    rng = np.random.default_rng(block)
    for _ in range(PROGRAMS // 10):
        outputs = draw_program(rng)
        inputs = len(outputs)
        found = leakage_of_counts(Counter(outputs.tolist()))
        # of each input the number of those that share its trace: nothing here uses the law of the traces
        shared = np.bincount(outputs)[outputs]
        ratios = inputs / shared
        assert found.level == pytest.approx(math.log(ratios.max()), rel=1e-14, abs=1e-15)
        assert len(found.law) == len(set(outputs.tolist()))
        assert found.compute_maximal_leakage() == pytest.approx(math.log(len(found.law)), rel=1e-14)
        assert found.compute_mean_leakage() == pytest.approx(
            np.log(ratios).mean(), rel=1e-9, abs=1e-13
        )
        law = dict(found.leakage_law())
        by_inputs = Counter(shared.tolist())
        assert sorted(law.values()) == sorted(Fraction(k, inputs) for k in by_inputs.values())
        assert sum(law.values()) == 1
        for level in rng.uniform(0, 12, 3).tolist():
            assert found.compute_tail(level) == tail_by_inputs(np.log(ratios), level, inputs)
        bits = int(rng.integers(0, 17))
        assert found.compute_tail(bits, "bits") == Fraction(
            int((inputs > shared * 2**bits).sum()), inputs
        )
        delta = float(rng.uniform())
        quantile = math.exp(found.compute_quantile(delta))
        assert (
            (ratios > quantile * (1 + 1e-12)).mean()
            <= delta
            < (ratios >= quantile * (1 - 1e-12)).mean()
        )
        reached = math.exp(found.compute_envelope(delta))
        assert processed_mass(shared, reached * (1 - 1e-12)) >= delta * (1 - 1e-11)
        assert processed_mass(shared, reached * (1 + 1e-12)) < delta or reached >= ratios.max() * (
            1 - 1e-12
        )


def processed_mass(shared: np.ndarray, ratio: float) -> float:
    """Return the most mass on outcomes that reveal log of a ratio, from the traces that may be among them."""
    rare = shared * ratio <= len(shared) * (1 + 1e-13)
    return min(1.0, float((1 / shared[rare]).sum()) / ratio)


@pytest.mark.parametrize("seed", range(6))
def test_its_measures_are_those_of_the_matrix(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 6, rng.integers(2, 6)).tolist()
    found, inputs = leakage_of_counts(counts), sum(counts)
    matrix = np.eye(len(counts))[np.repeat(np.arange(len(counts)), counts)]
    # the leakage of a program does not depend on the prior but by the law of its traces
    prior = np.full(inputs, 1 / inputs)
    assert found.level == pytest.approx(measures.leakage_level(prior, matrix))
    assert found.compute_maximal_leakage() == pytest.approx(measures.maximal_leakage(matrix))
    assert found.compute_mean_leakage() == pytest.approx(measures.mutual_information(prior, matrix))
    levels, masses = measures.leakage_law(prior, matrix)
    assert [level for level, _ in found.leakage_law()] == pytest.approx(levels.tolist())
    assert [float(mass) for _, mass in found.leakage_law()] == pytest.approx(masses.tolist())
    assert float(found.compute_tail(1.0)) == pytest.approx(failure_probability(prior, matrix, 1.0))
    for delta in (0.03, 0.2, 0.6):
        result = solve(envelope(prior, matrix, delta))
        assert found.compute_envelope(delta) == pytest.approx(result.value, abs=1e-7)


def test_another_prior_matters_by_the_law_of_the_traces_only() -> None:
    prior, matrix = [0.5, 0.25, 0.125, 0.125], np.eye(2)[[0, 0, 1, 1]]
    found = leakage_of_counts({0: "3/4", 1: "1/4"})
    assert found.level == pytest.approx(measures.leakage_level(prior, matrix))
    assert found.compute_maximal_leakage() == pytest.approx(measures.maximal_leakage(matrix))


def test_two_classes_of_two_to_the_thirty_two_secrets() -> None:
    """A comparison with one secret of 32 bits: the numbers that model counting gives for it."""
    found = leakage_of_counts({"equal": 1, "other": 2**32 - 1})
    equal, other = (found.compute_leakage(trace, "bits") for trace in ("equal", "other"))
    assert equal == 32.0
    assert f"{other:.2e}" == "3.36e-10"
    assert other == pytest.approx(2.0**-32 / math.log(2), rel=1e-9)


def test_two_to_the_sixty_four_secrets_in_classes() -> None:
    """A program that shows whether the secret of 64 bits is 0, and else its highest byte."""
    counts = {"zero": 1, 0: 2**56 - 1} | dict.fromkeys(range(1, 256), 2**56)
    found = leakage_of_counts(counts)
    assert found.compute_level("bits") == 64.0
    assert len(found.law) == 257
    assert found.compute_tail(9, "bits") == Fraction(1, 2**64)
    assert found.compute_quantile(Fraction(1, 2**64), "bits") == pytest.approx(8.0, abs=1e-12)
    # a quarter of the runs is 2^62 secrets, which 4 rare traces of some bytes reveal by 2 bits at least
    assert found.compute_envelope(Fraction(1, 4), "bits") == pytest.approx(8.0, abs=1e-12)
    assert found.compute_envelope(Fraction(1, 2**63), "bits") == 63.0


@given(st.integers(1, 2**70), st.integers(0, 2**70), st.floats(0, 60))
def test_levels_are_compared_exactly(below: int, more: int, level: float) -> None:
    ratio = 1 + Fraction(more, below)
    known = math.log(ratio.numerator) - math.log(ratio.denominator)
    if abs(known - level) > 1e-9:
        assert exceeds_level(ratio, level) == (known > level)
    assert not exceeds_level(Fraction(2) ** 40, 40, "bits")
    assert exceeds_level(Fraction(2**40 * below + 1, below), 40, "bits")
    assert exceeds_level(ratio, 0) == (ratio > 1)


def test_a_float_next_to_a_logarithm_is_on_its_side() -> None:
    # the decimal expansions of log 2 = 0.693147180559945309417... and of its float ...286...
    assert exceeds_level(Fraction(2), math.log(2))
    assert not exceeds_level(Fraction(2), math.nextafter(math.log(2), 1))


def test_the_worst_public_input_and_the_whole_curve() -> None:
    """A comparison `secret < guess` of 8 secrets: guesses at the edge reveal most, in the middle least."""
    tables = {k: {"below": k, "not below": 8 - k} for k in range(9)}
    found = leakage_of_inputs(tables)
    curve = {k: program.compute_level("bits") for k, program in found.items()}
    assert curve == {
        k: 0.0 if k in (0, 8) else pytest.approx(3 - math.log2(min(k, 8 - k))) for k in tables
    }
    assert list(found)[:2] == [1, 7]
    assert list(curve.values()) == sorted(curve.values(), reverse=True)
    means = {k: program.compute_mean_leakage() for k, program in found.items()}
    assert max(means, key=lambda k: means[k]) == 4
    assert means[4] == pytest.approx(math.log(2))


@pytest.mark.parametrize("counts", [
    {"a": 1, "b": 3}, {"a": np.int64(1), "b": np.uint64(3)}, {"a": "1/4", "b": "3/4"},
    {"a": Fraction(1, 4), "b": "0.75"}, {"a": 0.25, "b": 0.75}, {"a": 2**64, "b": 3 * 2**64},
    {"a": 1, "b": 3, "never": 0}, pd.Series({"a": 1, "b": 3}), pd.Series({"a": "1/4", "b": "3/4"}),
    pd.Series(["a", "b", "b", "b"]).value_counts(), pd.DataFrame({"trace": ["a", "b"], "count": [1, 3]}),
    pl.DataFrame({"trace": ["a", "b"], "count": [1, 3]}), Counter("abbb"),
])  # fmt: skip
def test_forms_of_counts(counts: Any) -> None:
    found = leakage_of_counts(counts)
    assert list(found.law.items()) == [("a", Fraction(1, 4)), ("b", Fraction(3, 4))]


@pytest.mark.parametrize("trace", [(1, "a"), b"\x00", frozenset({1}), None, 3.5, True, "", "0001"])
def test_traces_of_any_kind(trace: Any) -> None:
    assert next(iter(leakage_of_counts({trace: 1, "other": 7}).law)) == trace


def test_counts_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text('{"fast": "1/3", "slow": "2/3"}')
    assert leakage_of_counts(tmp_path / "b.json").law["fast"] == Fraction(1, 3)
    (tmp_path / "c.csv").write_text(f"trace,count\n1,{2**64}\n2,{2**64}\n")
    assert leakage_of_counts(tmp_path / "c.csv").compute_level("bits") == 1.0


@pytest.mark.parametrize(
    "shares", [[0.1] * 10, ["0.1", "0.2", "0.7000000000000001"], [0.1, 0.2, 0.7]]
)
def test_decimals_sum_to_one_up_to_rounding(shares: Any) -> None:
    """Floats, and the text that a file has of them, are divided by their sum."""
    found = leakage_of_counts(shares)
    total = sum(map(Fraction, shares))
    assert set(found.law.values()) == {Fraction(one) / total for one in shares}
    assert sum(found.law.values()) == 1


@pytest.mark.parametrize(("counts", "words"), [
    ({}, "no trace occurs"), ({"a": 0}, "no trace occurs"), ({"a": -1, "b": 2}, "'a' is -1"),
    ({"a": math.nan}, "not nan"), ({"a": math.inf}, "not inf"), ({"a": "x"}, "not 'x'"),
    ({"a": True}, "not True"), ({"a": None}, "not None"), ({"a": "1/0"}, "not '1/0'"),
    ({"a": "1e99999"}, "not '1e99999'"), ({"a": 0.3, "b": 0.3}, "sum to 0.6"),
    ({"a": "1/3", "b": "1/3"}, "sum to 2/3"), ({"a": "0.3333", "b": "0.6666"}, "sum to 9999/10000"),
    ({"a": 1.5, "b": 2}, "sum to 7/2"), ([[1, 2]], "must be a number"), ("traces", "shape"),
])  # fmt: skip
def test_counts_that_cannot_be_meant(counts: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        leakage_of_counts(counts)


def test_arguments_that_cannot_be_meant() -> None:
    found = leakage_of_counts([1, 3])
    for epsilon in (-1, math.nan, "x", True):
        with pytest.raises(PrivacyError, match="epsilon"):
            found.compute_tail(epsilon)  # type: ignore[arg-type]
    assert found.compute_envelope(0) == found.level
    for delta in (1, -0.5, "4/3", "x"):
        with pytest.raises(PrivacyError, match="delta"):
            found.compute_envelope(delta)
    with pytest.raises(InputError, match="'Bits' is not known"):
        found.compute_level("Bits")  # type: ignore[arg-type]
    with pytest.raises(MechanismError, match="the public input 'x'"):
        leakage_of_inputs({"x": {"a": -1}})
    with pytest.raises(MechanismError, match="mapping from each public input"):
        leakage_of_inputs({})
