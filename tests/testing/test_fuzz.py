"""A short run of the fuzzer, and that it can find what is false."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import fuzz
import numpy as np
import pytest
from fuzzing import mutated_files, own, random_designs, random_ratios, random_releases
from fuzzing.independent import largest_gain, leaking_mass, log_excess, meets_pairs

from pmlopt import Prior, solve
from pmlopt.programs.result import Result

INSTANCES = {
    "record-leakage": 4,
    "trade-off": 1,
    "envelope-design": 4,
    "every-prior-order": 4,
    "least-epsilon": 3,
    "curved-set": 4,
}
"""Fewer of the kinds that take longest; `docs/assurance.md` tells of the long runs."""


@pytest.mark.parametrize("kind", list(fuzz.KINDS))
def test_no_claim_is_false(kind: str) -> None:
    instances = INSTANCES.get(kind, 10)
    tally = fuzz.run(kind, 20261122, instances)
    assert tally.false_claims == []
    assert sum(tally.statuses.values()) == instances


@pytest.mark.parametrize("change", ["level", "value", "bound"])
def test_a_false_claim_is_found(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = solve

    def lying(program: Any) -> Result[Any]:
        result = honest(program)
        certificate = result.certificate
        if change == "level":
            uniform = np.full(certificate.mechanism.matrix.shape, 0.0)
            uniform[:, 0] = 1.0
            uniform[0] = np.eye(uniform.shape[1])[-1]
            mechanism = type(certificate.mechanism)(uniform)
            return replace(result, certificate=replace(certificate, mechanism=mechanism))
        lie = {change: getattr(certificate, change) * 0.5 - 100}
        return replace(result, certificate=replace(certificate, **lie))

    monkeypatch.setattr(random_designs, "solve", lying)
    tally = fuzz.run("linear", 1, 4)
    assert tally.false_claims
    assert "seed 1, instance" in tally.false_claims[0]


@pytest.mark.parametrize("kind", ["envelope", "record-leakage"])
@pytest.mark.parametrize("change", ["value", "bound"])
def test_a_false_claim_about_a_release_is_found(
    kind: str, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = solve

    def lying(program: Any, **options: Any) -> Result[Any]:
        result = honest(program, **options)
        lie = result.value / 2 if change == "bound" else result.value + 0.1
        certificate = replace(result.certificate, **{change: lie})
        monkeypatch.setattr(type(certificate), "verify", lambda _: True)
        return replace(result, certificate=certificate)

    monkeypatch.setattr(random_releases, "solve", lying)
    assert fuzz.run(kind, 1, 3).false_claims


def test_the_mass_that_leaks_is_that_of_the_outputs_that_do() -> None:
    assert leaking_mass(Prior.uniform(2), np.eye(2), 2) == 1
    skewed = Prior.from_counts([9, 1])
    # the rare letter and 4/9 of the other
    assert leaking_mass(skewed, np.eye(2), 2) == Fraction(1, 10) + Fraction(9, 10) * Fraction(4, 9)
    assert leaking_mass(skewed, np.eye(2), 11) == 0


def test_the_command_prints_a_table_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz.main(["--kinds", "linear", "local", "--instances", "2"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert fuzz.main(["--kinds", "linear", "--instances", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["linear"]["false_claims"] == []


def test_requirements_of_a_module_of_ones_own_are_drawn_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_survey.py").write_text(
        "from typing import ClassVar\n\nfrom pmlopt.model.privacy import LIP\n\n\n"
        'class Panel(LIP):\n    name: ClassVar[str] = "panel-privacy"\n'
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(own, "KINDS", [])
    assert fuzz.main(["--kinds", "own", "--instances", "3", "--import", "my_survey"]) == 0
    assert [kind.name for kind in own.KINDS] == ["panel-privacy"]


def test_pairs_are_decided_as_fractions() -> None:
    one, zero, half = Fraction(1), Fraction(0), Fraction(1, 2)
    pair = (
        [one, zero],
        [half, half],
        Fraction(0.4054651081081644),
    )  # PML of the first letter, log 1.5
    column = np.array([[0.75], [0.25]])
    assert meets_pairs([pair], column)
    assert not meets_pairs([(pair[0], pair[1], Fraction(0.4054651081081643))], column)
    assert not meets_pairs([([one, zero], [zero, one], one)], np.array([[1.0], [0.0]]))
    assert meets_pairs([([one, zero], [half, half], zero)], np.array([[0.5], [0.5]]))
    assert not meets_pairs([([one, zero], [half, half], zero)], np.array([[0.5], [0.5 - 2**-54]]))
    assert log_excess([pair], column) == pytest.approx(0.0, abs=1e-15)
    told = largest_gain(np.array([0.5, 0.5]), [pair], np.eye(2))
    assert told == pytest.approx(5 / 6)  # by the columns (1, 1/3) and (0, 2/3)


def test_a_level_next_to_zero_is_rounded_up_past_what_fractions_say() -> None:
    # of a design of 0 nats about a secret: 3.03e-15 by fractions, and less is taken for rounding
    random_ratios.ratios(np.random.default_rng([9101, list(fuzz.KINDS).index("ratios"), 11]))


@pytest.mark.parametrize("kind", fuzz.READERS)
def test_a_changed_file_is_read_or_refused(kind: str) -> None:
    tally = fuzz.run(kind, 20261128, 12)
    assert tally.false_claims == []
    assert sum(tally.statuses.values()) == 12


def test_an_error_that_is_none_of_pmlopts_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path) -> None:
        raise KeyError(path.name)

    name, write, _ = mutated_files.READERS["prior"]
    mutated_files.make_whole("prior")
    monkeypatch.setattr(mutated_files, "READERS", {"prior": (name, write, fail)})
    assert "KeyError: 'p.csv'" in fuzz.run("read-prior", 1, 1).false_claims[0]
