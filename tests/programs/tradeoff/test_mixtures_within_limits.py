"""Mixtures of mechanisms that meet a limit exactly: distortion is linear, and leakage is convex."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pmlopt import distortion_leakage, leakage_distortion
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.model.queries import ModularSum
from pmlopt.programs.tradeoff import build_certificate, proof
from pmlopt.programs.tradeoff import program as program_module
from pmlopt.programs.tradeoff.build_certificate import mix_within_leakage
from pmlopt.programs.tradeoff.grouped_rows import (
    _split_by_mass,
    build_families,
    find_family_member,
    plan_groupings,
)
from pmlopt.programs.tradeoff.program import combine_convexly
from pmlopt.programs.wu2026entropy.penalty import _build_interior_start


def test_a_mixture_uses_the_limit_on_the_distortion_up() -> None:
    program = leakage_distortion(ModularSum(2, 3), 0.2, 0.7)
    uniform = np.full(program.losses.shape, 1 / program.losses.shape[1])
    assert program.tradeoff.compute_distortion(uniform) > 0.2
    mixed = program.repair_matrix(uniform)
    assert mixed.sum(axis=1) == pytest.approx(np.ones(len(mixed)))
    spent = program.tradeoff.compute_distortion(mixed)
    assert spent == pytest.approx(0.2, abs=1e-9)
    assert spent <= 0.2
    within = combine_convexly(uniform, program.least_distortion_matrix, 0.9)
    assert program.repair_matrix(within) == pytest.approx(within)


def test_a_mixture_uses_the_limit_up_where_the_least_distortion_is_positive() -> None:
    loss = np.array([[0.1, 1.0], [1.0, 0.3], [0.6, 0.5]])
    program = leakage_distortion(ModularSum(2, 3), 0.45, 0.7, loss=loss)
    assert program.min_distortion == pytest.approx(0.3)
    mixed = program.repair_matrix(np.full(program.losses.shape, 0.5))
    assert program.tradeoff.compute_distortion(mixed) == pytest.approx(0.45, abs=1e-9)
    start = _build_interior_start(program)
    assert program.tradeoff.compute_distortion(start) == pytest.approx(0.45, abs=1e-9)


def test_what_rounding_puts_above_a_limit_is_mixed_further(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a share of a tenth here; the distortion is linear in the shares."""
    monkeypatch.setattr(program_module, "EXTRA_MIXING_SHARES", (0.1,))
    program = leakage_distortion(ModularSum(2, 3), 0.2, 0.7)
    uniform = np.full(program.losses.shape, 1 / program.losses.shape[1])
    distortion = program.tradeoff.compute_distortion
    spent = distortion(uniform)
    found = distortion(program.repair_matrix(uniform))
    assert found == pytest.approx(0.2 - 0.1 * (spent - program.min_distortion))


@pytest.mark.parametrize("limit", [0.15, 0.3])
def test_the_exponential_mechanism_within_a_limit_uses_it_up(limit: float) -> None:
    """Its logarithms fall with the loss, at one rate for all values of the query and all outputs."""
    loss = np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 1.0], [1.0, 2.0, 0.0]])
    program = leakage_distortion(ModularSum(2, 3), limit, 0.7, loss=loss)
    rows = plan_groupings(program)[0]
    exponential = build_families(rows)[1]
    assert exponential(1.0) == pytest.approx(np.full((3, 3), 1 / 3))
    assert exponential(0.0) == pytest.approx(program.least_distortion_matrix)
    found = find_family_member(rows, exponential)
    assert program.tradeoff.compute_distortion(found) == pytest.approx(limit)
    fallen = np.log(found.max(axis=1, keepdims=True)) - np.log(found)
    assert fallen == pytest.approx(loss * fallen[0, 1])


@pytest.mark.parametrize(("aim", "kept"), [(0.1, 0.25), (0.3, 0.75), (0.4, 1.0)])
def test_a_mixture_with_a_constant_keeps_the_share_of_the_leakage_that_is_aimed_at(
    aim: float, kept: float
) -> None:
    program = distortion_leakage(ModularSum(2, 3), 0.2, 0.7)
    audit: Any = SimpleNamespace(bound=0.4)
    matrix = program.least_distortion_matrix
    found = mix_within_leakage(program, matrix, audit, aim)
    assert found == pytest.approx(kept * matrix + (1 - kept) * program.constant_matrix)


@pytest.mark.parametrize(("bound", "place"), [(1.2, 0.609375), (1.0, 0.5), (0.7, 0.0)])
def test_the_first_mechanism_likely_within_an_aim_is_found_on_a_path(
    monkeypatch: pytest.MonkeyPatch, bound: float, place: float
) -> None:
    """The leakage falls as 1 - t, times 1.4 of the gap of the audit and one more, at an aim of .5."""
    monkeypatch.setattr(build_certificate, "split_audit_prior", lambda audit, counts: None)
    monkeypatch.setattr(
        build_certificate, "compute_record_information", lambda joint, matrix: float(matrix[0, 0])
    )
    audit: Any = SimpleNamespace(bound=bound, value=1.0, record=0)
    program: Any = SimpleNamespace(log_counts=[None])
    first = 0.8 if bound < 1 else 1.0

    def path(place: float) -> FloatArray:
        return np.array([[first * (1 - place)]])

    found = build_certificate.find_likely_within_limit(program, path, audit, 0.5)
    assert 1 - found[0, 0] / path(0.0)[0, 0] == pytest.approx(place)


def test_classes_of_a_value_are_split_into_parts_of_about_equal_probability() -> None:
    """By where the middle of each class is among the cumulated masses of its value, at most in the last."""
    masses = np.array([0.1, 0.3, 0.05, 0.15, 0.1, 0.02, 0.28, 0.0])
    groups = np.array([0, 1, 0, 0, 1, 0, 1, 1])
    program: Any = SimpleNamespace(orbits=SimpleNamespace(masses=masses))
    for parts in (1, 2, 3, 4):
        expected = []
        for place, value in enumerate(groups):
            before = sum(
                m for m, g in zip(masses[:place], groups[:place], strict=True) if g == value
            )
            middle = (before + masses[place] / 2) / masses[groups == value].sum()
            expected.append(min(int(middle * parts), parts - 1))
        assert _split_by_mass(program, groups, parts).tolist() == expected


def test_only_next_to_the_least_distortion_are_outputs_limited_to_the_cheapest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a mean loss of 2.5; an output is as cheap as another up to the same share."""
    monkeypatch.setattr(proof, "LOSS_RTOL", 0.1)
    losses = np.array([[2.0, 2.19, 2.21], [3.31, 3.29, 3.0]])
    for limit, free in ((2.5 * 1.05, False), (2.5 * 1.15, True)):
        found = proof.make_tradeoff_losses(losses / 2, "leakage", limit)
        expected = [[True, True, True]] * 2 if free else [[True, True, False], [False, True, True]]
        assert found.allowed.tolist() == expected
    assert proof.make_tradeoff_losses(losses / 2, "distortion", 0.0).allowed.all()
