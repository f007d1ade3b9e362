"""The library's problems on symmetric priors: every solver, and programs of another hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles import designs as oracles
from oracles.symmetry import bits_under_hamming

from pmlopt import (
    PML,
    CirclePrior,
    CoordinateLoss,
    ExpectedGain,
    IIDPrior,
    design,
    solve,
)
from pmlopt.errors import PmloptError
from pmlopt.library import Instance, find, load
from pmlopt.model.utility import DisplacementLoss
from pmlopt.programs.linear.program import SymmetricDesign


def asked(instance: Instance) -> SymmetricDesign:
    program = instance.program()
    assert isinstance(program, SymmetricDesign)
    return program


@pytest.mark.parametrize(
    "name", ["bits-hamming-4", "three-answers-three-people", "hours-on-a-circle", "mirrored-scale"]
)
def test_small_ones_agree_with_the_dense_program(name: str) -> None:
    program = asked(find(name))
    prior = program.prior.listed()
    table = program.utility.table(prior.labels, prior.labels)
    if prior.size > 16:  # as many rows as pairs of letters: the listed program, which the dense one holds
        wanted = solve(design(prior, program.privacy, ExpectedGain(-table))).value
    else:
        wanted = oracles.optimum(prior.pmf, program.privacy, -table).value
    assert -solve(program).value == pytest.approx(wanted, abs=1e-9)


def test_24_bits_agree_with_a_program_of_another_hand() -> None:
    assert solve(asked(find("bits-hamming-24"))).value == pytest.approx(
        bits_under_hamming(0.3, 24, 1.0), abs=2e-9
    )


HEAD = """
id = "small"
title = "A small problem"
builder = "design"

[source]
cite = "somebody"
where = "somewhere"

[params]
"""


def read(folder: Path, params: Sequence[str]) -> dict[str, Any]:
    """The arguments of a design with a prior, a requirement and a utility, as a file has them."""
    path = folder / "small.toml"
    lines = zip(("prior", "privacy", "utility"), params, strict=True)
    path.write_text(HEAD + "\n".join(f"{key} = {value}" for key, value in lines))
    return dict(load(path).arguments)


def turned(base: str, move: Sequence[int]) -> str:
    """A prior and one permutation of its letters."""
    return f'{{ kind = "invariant", base = {base}, moves = [[{move}, {move}]], output_labels = {len(move)} }}'


def test_tables_of_records_are_read_by_key(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        [
            '{ kind = "types", law = { counts = [7, 3] }, records = 5 }',
            '{ name = "pml", epsilon = 1.0 }',
            '{ kind = "coordinate-loss", function = [[0, 2], [1, 0]] }',
        ],
    )
    assert isinstance(found["prior"], IIDPrior)
    assert (found["prior"].records, found["prior"].law.counts) == (5, (7, 3))
    assert isinstance(found["utility"], CoordinateLoss)
    assert found["utility"].table([(0, 1)], [(1, 1)]).tolist() == [[2.0]]


def test_a_ball_around_a_table_is_around_its_prior(tmp_path: Path) -> None:
    ball = read(
        tmp_path,
        [
            '{ kind = "types", law = { counts = [7, 3] }, records = 4 }',
            '{ name = "pml", epsilon = 1.0, over = { kind = "l1-ball", radius = 0.1 } }',
            '{ kind = "coordinate-loss", function = "hamming" }',
        ],
    )
    assert solve(design(**ball)).certificate.verify()


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ('{ kind = "types", law = { counts = [7, 3] }, records = 0 }', "records"),
        (
            turned("{ counts = [7, 3] }", [1, 0]),
            "not invariant",
        ),
        ('{ kind = "circle", size = 0 }', "size"),
        ('{ kind = "circle", size = 4, labels = [1, 2, 3, 4] }', "labels"),
    ],
)
def test_what_is_no_symmetric_prior_is_refused(prior: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(PmloptError, match=message):
        read(tmp_path, [prior, '{ name = "pml", epsilon = 1.0 }', '"hamming"'])


def test_the_circle_is_the_mean_of_the_least_losses() -> None:
    """By hand: with e^eps letters of mass 1/N a column may put all its mass on N e^-eps displacements."""
    for size, share in [(24, 4), (12, 3), (30, 6)]:
        along = [min(d, size - d) for d in range(size)]
        result = solve(design(CirclePrior(size), PML(float(np.log(share))), DisplacementLoss(along)))
        assert result.value == pytest.approx(np.mean(sorted(along)[: size // share]), abs=1e-9)
