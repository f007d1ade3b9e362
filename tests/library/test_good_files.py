"""Problem files that become programs, each by its keys."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import run, write
from library.problem_files import (
    DESIGN,
    ENVELOPE,
    ESTIMATION,
    LEAST,
    PRIVACY,
    RECORD,
    TRADEOFF,
    WORST,
)

from pmlopt import (
    LDP,
    LIP,
    PML,
    CoordinateLoss,
    GainLeakage,
    IIDPrior,
    JointLaws,
    MetricPrivacy,
    Pufferfish,
    Secret,
    closed_forms,
    design,
    leakage_level,
    queries,
    solve,
)
from pmlopt.errors import InstanceError, PmloptError, SolverUnavailableError
from pmlopt.library import load
from pmlopt.library.instances import build_closed_form
from pmlopt.model.privacy import Requirement

PRIOR = 'prior = { probabilities = [0.5, 0.5], labels = ["a", "b"] }'


def asked(folder: Path, text: str) -> Any:
    """The program of a file."""
    return load(write(folder, text)).program()


def test_a_good_file_becomes_a_program(tmp_path: Path) -> None:
    instance = load(write(tmp_path, DESIGN))
    program: Any = instance.program()
    assert program.privacy == PML(math.log(1.25))
    assert instance.prior.labels == ("a", "b")
    assert instance.expected is not None
    assert instance.expected.agrees_with(solve(program).value)
    assert instance.closed_value() is None


RATIOS = [
    ('{ name = "lip", lower = 0.5, upper = 1 }', LIP(0.5, 1.0)),
    ('{ name = "pml", epsilon = [0.3, { log = "5/4" }] }', PML([0.3, math.log(1.25)])),
    ('{ name = "metric", epsilon = 0.5, distance = "hamming" }', MetricPrivacy(0.5, [[0, 1], [1, 0]])),
    ('{ name = "metric", epsilon = 0.5, distance = [[0, 2], [2, 0]] }', MetricPrivacy(0.5, [[0, 2], [2, 0]])),
    ('{ name = "metric", epsilon = 0.5, edges = [["b", "a", 2]] }', MetricPrivacy(0.5, [[0, 2], [2, 0]])),
    ('{ name = "g-leakage", epsilon = 0.5, gain = [[1, 0], [0, 1]] }', GainLeakage(0.5, [[1, 0], [0, 1]])),
    ('{ name = "pml", epsilon = 0.1, about = { joint = [[0.25, 0.0], [0.25, 0.5]] } }',
     PML(0.1, about=Secret([[0.25, 0.0], [0.25, 0.5]]))),
    ('{ name = "pufferfish", epsilon = 0.1, secret = { counts = [[1, 0], [1, 2]], values = ["s", "t"] }, '
     'pairs = [["t", "s"]] }',
     Pufferfish(0.1, Secret.from_counts([[1, 0], [1, 2]]))),
    ('{ name = "all-of", parts = [{ name = "pml", epsilon = 0.3 }, { name = "ldp", epsilon = 0.4 }] }',
     PML(0.3) & LDP(0.4)),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "meant"), RATIOS)
def test_ratio_bounds_are_read_by_key(tmp_path: Path, keys: str, meant: Requirement) -> None:
    program = asked(tmp_path, DESIGN.replace(PRIVACY, keys))
    exact = np.array(program.prior.weights, dtype=object)
    one, other = program.privacy.ratios(exact), meant.ratios(exact)
    assert program.privacy.limits == meant.limits
    for name in ("rows", "scales", "above", "below", "exponents"):
        assert np.array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("key", ["radius", "delta"])
def test_sets_of_joint_laws_are_read(tmp_path: Path, key: str) -> None:
    kind = {"radius": "joint-ball", "delta": "joint-confidence"}[key]
    about = (
        f'{{ name = "pml", epsilon = 0.1, about = "secret", over = {{ kind = "{kind}", {key} = 0.1 }} }}\n'
        "secret = { counts = [[10, 1], [10, 19]] }"
    )
    requirement = asked(tmp_path, DESIGN.replace(PRIVACY, about)).privacy
    secret = Secret.from_counts([[10, 1], [10, 19]])
    meant = JointLaws.ball(secret, 0.1) if key == "radius" else JointLaws.confidence(secret, 0.1)
    assert requirement == PML(0.1, about=secret, over=meant)
    assert requirement.scope == meant.scope


def test_the_prior_is_that_of_the_secret_where_none_is_given(tmp_path: Path) -> None:
    about = '{ name = "pml", epsilon = 0.1, about = "secret" }\n'
    about += 'secret = { counts = [[1, 0], [2, 5]], labels = ["x", "y"] }'
    program = asked(tmp_path, DESIGN.replace(PRIOR, "").replace(PRIVACY, about))
    assert program.prior.counts == (3, 5)
    assert program.prior.labels == ("x", "y")


@pytest.mark.parametrize(
    ("letters", "keys"), [(3, ', over = { kind = "l1-ball", radius = 0.1 }'), (2, "")]
)
def test_the_robust_binary_form_is_for_two_letters_and_a_set(
    tmp_path: Path, letters: int, keys: str
) -> None:
    text = DESIGN.replace(PRIOR, f"prior = {{ probabilities = {[1 / letters] * letters} }}")
    text = text.replace('{ log = "5/4" }', f"0.5{keys}")
    text = text.replace('"hamming"', '{ kind = "information-density", of = "robust_binary" }')
    with pytest.raises(
        InstanceError, match=f"robust_binary is for 2 letters .* not for {letters} letters"
    ):
        load(write(tmp_path, text))


@pytest.mark.parametrize("text", [WORST, LEAST], ids=["worst case", "least leakage"])
def test_a_file_about_the_least_level_becomes_a_program(tmp_path: Path, text: str) -> None:
    instance = load(write(tmp_path, text))
    result: Any = solve(instance.program())
    assert instance.expected is not None
    assert instance.expected.agrees_with(result.value)
    level = leakage_level(instance.prior, result.mechanism)
    assert level <= result.level <= level + 1e-12  # rounded up where it is claimed
    assert instance.closed_value() is None


@pytest.mark.parametrize("privacy", ['"ldp"', '{ name = "ldp", epsilon = 0.0 }'])
def test_a_file_about_the_least_level_of_any_requirement(tmp_path: Path, privacy: str) -> None:
    """Randomized response tells the truth with e^eps / (e^eps + 3), half the time at log 3."""
    text = LEAST.replace("expected = 0.5", f"privacy = {privacy}\nreach = 0.5").replace(
        "0.6931", "1.0986"
    )
    instance = load(write(tmp_path, text))
    assert solve(instance.program()).value == pytest.approx(math.log(3), abs=2e-7)
    with pytest.raises(PmloptError, match="give `reach`"):
        load(write(tmp_path, text.replace("reach = 0.5\n", ""))).program()


def test_workloads_are_read(tmp_path: Path) -> None:
    program = asked(tmp_path, ESTIMATION)
    np.testing.assert_array_equal(program.workload, np.tri(3))
    assert asked(tmp_path, ESTIMATION.replace('"prefix"', "[[1, 2, 4]]")).workload.tolist() == [
        [1.0, 2.0, 4.0]
    ]
    with pytest.raises(PmloptError):
        build_closed_form(program, "least_pml_estimation_error")
    expected = '[expected]\nbasis = "theorem"\nrelation = "=="\nclosed_form = "least_ldp_estimation_error"\n'
    with pytest.raises(PmloptError, match="is for frequencies"):
        load(write(tmp_path, f"{ESTIMATION}{expected}value = 1.0")).closed_value()


def test_an_envelope_is_solved_from_the_shell(tmp_path: Path) -> None:
    assert "no post-processing leaks more than 0.57536" in run("solve", write(tmp_path, ENVELOPE))
    wrong = ENVELOPE.replace("0.5753641449035619", "0.5")
    assert run("solve", write(tmp_path, wrong), code=1)
    assert "no post-processing leaks more than 0.5 nats but" in run(
        "solve", "envelope-design-binary"
    )


LOSS = '{ kind = "coordinate-loss", function = "hamming" }'


def symmetric(
    prior: str, privacy: str = '{ name = "pml", epsilon = 1.0 }', utility: str = LOSS
) -> str:
    """A design with a prior, a requirement and a utility."""
    text = DESIGN[: DESIGN.index("[expected]")].replace(PRIOR, f"prior = {prior}")
    return text.replace(PRIVACY, privacy).replace('"hamming"', utility, 1)


def test_tables_of_records_are_read_by_key(tmp_path: Path) -> None:
    table = '{ kind = "types", law = { counts = [7, 3] }, records = 4 }'
    loss = '{ kind = "coordinate-loss", function = [[0, 2], [1, 0]] }'
    found = load(write(tmp_path, symmetric(table, utility=loss))).arguments
    assert isinstance(found["prior"], IIDPrior)
    assert (found["prior"].records, found["prior"].law.counts) == (4, (7, 3))
    assert isinstance(found["utility"], CoordinateLoss)
    assert found["utility"].evaluate_table([(0, 1)], [(1, 1)]).tolist() == [[2.0]]
    ball = '{ name = "pml", epsilon = 1.0, over = { kind = "l1-ball", radius = 0.1 } }'
    around = load(write(tmp_path, symmetric(table, ball))).arguments
    assert solve(design(**around)).certificate.verify()


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ('{ kind = "types", law = { counts = [7, 3] }, records = 0 }', "records"),
        ('{ kind = "invariant", base = { counts = [7, 3] }, moves = [[[1, 0], [1, 0]]], output_labels = 2 }',
         "not invariant"),
        ('{ kind = "circle", size = 0 }', "size"),
        ('{ kind = "circle", size = 4, labels = [1, 2, 3, 4] }', "labels"),
    ],
)  # fmt: skip
def test_what_is_no_symmetric_prior_is_refused(prior: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(PmloptError, match=message):
        asked(tmp_path, symmetric(prior, utility='"hamming"'))


def test_a_question_about_records_is_read(tmp_path: Path) -> None:
    instance = load(write(tmp_path, RECORD))
    problem: Any = instance.program()
    assert problem.channel.query == queries.ModularSum(3, 2)
    assert problem.channel.mechanism.matrix.tolist() == [[0.75, 0.25], [0.25, 0.75]]
    assert problem.entropy == pytest.approx(math.log(4))
    closed = 0.75 * math.log(1.5) + 0.25 * math.log(0.5)
    assert instance.closed_value() == pytest.approx(closed, abs=1e-14)
    assert solve(problem).value == pytest.approx(closed, abs=1e-9)
    with pytest.raises(InstanceError, match="small has no prior"):
        _ = instance.prior
    with pytest.raises(SolverUnavailableError, match="branch-and-bound"):
        solve(problem, "highs")


def test_both_directions_of_a_trade_off_are_read(tmp_path: Path) -> None:
    there = load(write(tmp_path, TRADEOFF))
    assert there.closed_value() == pytest.approx(
        0.75 * math.log(1.5) + 0.25 * math.log(0.5), abs=1e-14
    )
    text = TRADEOFF.replace('"leakage_distortion"', '"distortion_leakage"')
    text = text.replace("distortion = 0.25", "leakage = 0.1").replace(
        "parity_leakage", "parity_distortion"
    )
    back = load(write(tmp_path, text))
    program: Any = back.program()
    assert program.sense == "distortion"
    noise = closed_forms.parity_distortion(2, 0.1, 0.0)
    assert back.closed_value() == noise
    assert solve(program).value == pytest.approx(noise, abs=1e-5)
    with pytest.raises(SolverUnavailableError, match="cutting-planes"):
        solve(program, "clarabel")
    with_loss = TRADEOFF.replace("distortion = 0.25", "distortion = 0.25\nloss = [[0, 2], [1, 0]]")
    problem = load(write(tmp_path, with_loss))
    assert problem.arguments["loss"].tolist() == [[0, 2], [1, 0]]
    with pytest.raises(InstanceError, match="for a parity and its own loss"):
        problem.closed_value()
