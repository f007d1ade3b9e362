"""Results equal their copies: from a pickle, and from a file. What differs makes them unequal."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from saved_cases import solved

from pmlopt import PML, Mechanism, Prior, design, load, solve, sweep
from pmlopt.core.records.fields import have_equal_content
from pmlopt.programs.certificate import Certificate

# of each form of certificate, with letters by number, by label, and by orbits
NAMES = (
    "budgets", "counts", "secret", "constrained", "information", "estimation", "least", "least-epsilon",
    "threshold", "envelope", "envelope-design", "record-capacity", "trade-off-distortion", "types-ldp",
    "circle", "product", "compliance",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_result_equals_its_pickle_and_what_is_loaded_from_its_file(
    name: str, tmp_path: Path
) -> None:
    result = solved(name)
    result.save(tmp_path / "result.json")
    for copy in (pickle.loads(pickle.dumps(result)), load(tmp_path / "result.json")):
        assert copy == result
        assert hash(copy) == hash(result)
        assert copy.certificate == result.certificate
        assert copy.certificate is not result.certificate


def test_a_result_equals_what_is_loaded_from_numpy_arrays(tmp_path: Path) -> None:
    result = solve(design(Prior([0.5, 0.3, 0.2], ["a", "b", "c"]), PML(0.3), "hamming"))
    result.save(tmp_path / "result.npz")
    assert load(tmp_path / "result.npz") == result


def test_results_that_differ_are_unequal() -> None:
    result = solve(design([0.5, 0.3, 0.2], PML(0.3), "hamming"))
    other = result.certificate.mechanism.matrix.copy()
    other[:, [0, 1]] = other[:, [1, 0]]
    certificate = replace(result.certificate, mechanism=Mechanism(other))
    assert result != replace(result, certificate=certificate)
    assert result.certificate != certificate
    assert result != replace(result, reason="another")
    assert result != replace(result, solver_options={"time": np.array([1.0])})
    assert result != solve(design([0.5, 0.3, 0.2], PML(0.2), "hamming"))
    assert result != "highs"
    assert len({result, pickle.loads(pickle.dumps(result))}) == 1


def test_certificates_of_other_kinds_are_unequal() -> None:
    certificates = [solved(name).certificate for name in ("pml", "information")]
    assert certificates[0] != certificates[1]
    assert all(isinstance(one, Certificate) for one in certificates)


def test_a_sweep_equals_its_pickle() -> None:
    table = sweep(
        lambda epsilon: design([0.5, 0.5], PML(epsilon), "hamming"), {"epsilon": [0.1, 0.2]}
    )
    copy = pickle.loads(pickle.dumps(table))
    assert copy == table
    assert hash(copy) == hash(table)
    assert table != replace(table, rows=table.rows[:1])
    assert table != replace(table, rows=table.rows[::-1])


def test_fields_of_arrays_are_compared_by_content() -> None:
    result = solve(design([0.5, 0.5], PML(0.3), "hamming"))
    start = result.restart
    assert have_equal_content(start, replace(start, arrays={**start.arrays}))
    assert not have_equal_content(start, replace(start, arrays={}))
