"""The leakage per record as a program: its problem, its methods by name and as objects, and warm starts."""

from __future__ import annotations

import math
import pickle
from unittest.mock import patch

import numpy as np
import pytest

from pmlopt import certify, record_leakage, solve, solvers_for
from pmlopt.errors import PrivacyError, ProgramError
from pmlopt.model.queries import ModularSum, Weight, symmetric_channel
from pmlopt.programs import Alternating, BranchAndBound, Status
from pmlopt.programs.certificate import Restart
from pmlopt.programs.record_leakage import branch_and_bound
from pmlopt.programs.record_leakage import closed_bounds as one_class_each

QUERY = Weight(3)
MECHANISM = symmetric_channel(QUERY, 0.2)
ONE_NODE = BranchAndBound(nodes=1)


def test_the_problem_is_a_relaxation_for_the_first_kind() -> None:
    program = record_leakage(QUERY, MECHANISM, 1.9)
    assert "declared" not in vars(program)  # until somebody looks
    assert (program.maximised, program.scale, program.tolerance) == (True, 1.0, 1e-7)
    above = float(program.problem.solve(solver="CLARABEL"))
    found = solve(program, tolerance=1e-3)
    assert found.value <= above + 1e-7
    with (  # near it, where H(X_i) bounds nothing, is what the first cell of class laws proves
        patch.object(branch_and_bound, "OUTPUTS_BY_DIMENSION", 0),
        patch.object(one_class_each, "MOST_CHOICES", 0),
    ):
        first = solve(program, solver=ONE_NODE)
    assert above - 1e-7 <= first.bound <= 1.05 * above
    assert set(program.constraints) == {"entropy", "law", "total", "marginal", "outputs", "letters"}
    assert set(program.variables) == {"joint", "law", "marginal", "leaked"}
    assert "constraint entropy" in str(program)
    assert repr(program) == "<RecordLeakage at 1.9 nats of entropy>"


def test_the_methods_have_names_and_reasons() -> None:
    program = record_leakage(QUERY, MECHANISM, 1.9)
    choices = {choice.name: choice for choice in solvers_for(program)}
    assert [(name, choice.automatic) for name, choice in choices.items()] == [
        ("branch-and-bound", True),
        ("alternating", False),
    ]
    assert "[wu2026entropy, Algorithm 1]" in choices["alternating"].reason
    assert "local optimum, no bound" in choices["alternating"].reason
    assert repr(Alternating(restarts=4)) == "Alternating(restarts=4, seed=0)"
    assert BranchAndBound() == BranchAndBound(nodes=None, seed=0)


def test_a_method_is_asked_for_by_name_or_as_an_object() -> None:
    program = record_leakage(ModularSum(3, 2), symmetric_channel(ModularSum(3, 2), 0.2), 1.0)
    for solver in ("auto", "branch-and-bound", BranchAndBound(seed=3)):
        found = solve(program, solver=solver)
        assert (found.solver, found.status) == ("branch-and-bound", Status.OPTIMAL)
    rough = solve(program, solver=Alternating(restarts=2, seed=1))
    assert (rough.solver, rough.status, rough.iterations) == ("alternating", Status.UNPROVED, 2)
    assert rough.bound == rough.gap == math.inf
    assert "the best of 2 starts" in rough.reason
    for wrong in (0, -1, 1.5):
        with pytest.raises(PrivacyError, match="the number of nodes must be a whole number"):
            BranchAndBound(nodes=wrong)  # type: ignore[arg-type]
        with pytest.raises(PrivacyError, match="the number of restarts must be a whole number"):
            Alternating(restarts=wrong)  # type: ignore[arg-type]


def test_the_laws_of_another_entropy_are_a_warm_start() -> None:
    high = solve(record_leakage(QUERY, MECHANISM, 2.0), solver=ONE_NODE)
    assert not high.warm_started
    law = high.restart.arrays["joint0"]
    assert law.shape == (2, len(high.certificate.channel.rows))
    kept = pickle.loads(pickle.dumps(high.restart))
    for start in (high, high.restart, kept):
        low = solve(record_leakage(QUERY, MECHANISM, 1.8), solver=ONE_NODE, warm_start=start)
        assert low.warm_started
        assert low.value >= high.value
    rough = solve(record_leakage(QUERY, MECHANISM, 1.8), solver=Alternating(restarts=1))
    assert solve(record_leakage(QUERY, MECHANISM, 1.8), solver=ONE_NODE, warm_start=rough).warm_started


def test_a_start_that_does_not_fit_is_left_out() -> None:
    program = record_leakage(QUERY, MECHANISM, 1.9)
    fits = np.full((2, 4), 0.1)
    fits[0, 3] = fits[1, 0] = 0.0  # no dataset has a zero there and weight three, or a one and weight zero
    for law in (np.ones((3, 3)), np.full((2, 4), 0.1), -fits, np.zeros((2, 4)), fits * np.nan):
        start = Restart("branch-and-bound", {"joint0": law})
        assert not solve(program, solver=ONE_NODE, warm_start=start).warm_started
    assert solve(program, solver=ONE_NODE, warm_start=Restart("mine", {"joint0": fits})).warm_started
    assert not solve(program, solver=ONE_NODE, warm_start=False).warm_started
    for mechanism in (MECHANISM, MECHANISM.matrix):
        with pytest.raises(ProgramError, match="starts from priors"):
            solve(program, warm_start=mechanism)


def test_a_matrix_alone_certifies_nothing() -> None:
    with pytest.raises(ProgramError, match="proved by a search"):
        certify(record_leakage(QUERY, MECHANISM, 1.9), MECHANISM)
