"""Designs for estimation from problem files and from the shell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from commands import write
from library.problem_files import ESTIMATION, LIBRARY
from oracles.columns import extreme_columns
from oracles.estimation import least_error

from pmlopt import EstimationError, solve
from pmlopt.errors import PmloptError
from pmlopt.library import Instance, load
from pmlopt.library.instances import closed_form
from pmlopt.programs.estimation.program import EstimationDesign

ALL = [one for one in LIBRARY if isinstance(one.arguments.get("utility"), EstimationError)]


@pytest.mark.parametrize("instance", ALL, ids=lambda instance: instance.id)
def test_every_instance_agrees_with_what_is_expected_and_an_independent_program(instance: Instance) -> None:
    program = instance.program()
    assert isinstance(program, EstimationDesign)
    result, expected = solve(program), instance.expected
    assert result.status.value == "optimal"
    assert result.certificate.verify()
    assert expected is not None
    assert expected.agrees(result.value)
    if program.criterion == "A":
        columns = extreme_columns(program.prior.pmf, program.privacy)
        assert result.value == pytest.approx(
            least_error(program.prior.pmf, columns, program.workload), rel=1e-5
        )
    closed = instance.closed_value()
    if closed is not None:
        assert closed == pytest.approx(expected.value, rel=1e-12)


def test_workloads_are_read(tmp_path: Path) -> None:
    program = load(write(tmp_path, ESTIMATION)).program()
    assert isinstance(program, EstimationDesign)
    np.testing.assert_array_equal(program.workload, np.tri(3))
    program = load(write(tmp_path, ESTIMATION.replace('"prefix"', "[[1, 2, 4]]"))).program()
    assert isinstance(program, EstimationDesign)
    assert program.workload.tolist() == [[1.0, 2.0, 4.0]]
    with pytest.raises(PmloptError):
        closed_form(program, "least_pml_estimation_error")


def test_a_closed_form_of_another_problem_is_refused(tmp_path: Path) -> None:
    text = """
[expected]
basis = "theorem"
relation = "=="
closed_form = "least_ldp_estimation_error"
value = 1.0
"""
    with pytest.raises(PmloptError, match="is for frequencies"):
        load(write(tmp_path, ESTIMATION + text)).closed_value()
