"""Former names of methods, statuses and kinds of certificates are read for one version, and never written."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import run_fully

from pmlopt import PML, ExpectedGain, design, load, solve, sweep
from pmlopt.errors import FormerNameWarning, SolverUnavailableError
from pmlopt.programs import Status
from pmlopt.programs.certificate import WarmStart
from pmlopt.programs.compliance import prove
from pmlopt.programs.former_names import (
    FORMER_KINDS,
    FORMER_METHODS,
    FORMER_STATUSES,
    replace_former_names,
)
from pmlopt.programs.program import Program
from pmlopt.programs.registry import list_certificates, list_registries
from pmlopt.programs.result import Result
from pmlopt.verification import verifier, verify_file

P = [0.5, 0.3, 0.2]


def make_design(epsilon: float = 0.5) -> Program[Any]:
    return design(P, PML(epsilon), ExpectedGain(np.eye(3)))


def save_as_before(result: Result[Any], path: Path) -> None:
    """Write a file as the version before wrote it."""
    data = {key: item for key, item in result.to_dict().items() if key != "mechanism"}
    for key, names in (("status", FORMER_STATUSES), ("solver", FORMER_METHODS)):
        before = {new: old for old, new in names.items()}
        data[key] = before.get(data[key], data[key])
    kinds = {new: old for old, new in FORMER_KINDS.items()}
    kind = data["certificate"]["kind"]
    data["certificate"] = {**data["certificate"], "kind": kinds.get(kind, kind)}
    result.mechanism.save(path, data)


def test_each_current_name_is_in_use_and_no_former_one_is() -> None:
    methods = {name for registry in list_registries() for name in registry.own_names}
    statuses, kinds = {str(one.value) for one in Status}, {one.kind for one in list_certificates()}
    for names, known in (
        (FORMER_METHODS, methods), (FORMER_STATUSES, statuses), (FORMER_KINDS, kinds),
    ):  # fmt: skip
        assert set(names.values()) <= known
        assert not set(names) & known


class TestMethods:
    @pytest.mark.parametrize("name", ["structured", "STRUCTURED"])
    def test_a_former_name_runs_the_method_and_warns_once_with_the_current_one(
        self, name: str
    ) -> None:
        with pytest.warns(FormerNameWarning) as caught:
            found = solve(make_design(), name)
        assert [str(one.message) for one in caught] == [
            f"the solver {name!r} is called 'block-ipm' now; the next version no longer accepts {name!r}"
        ]
        assert caught[0].filename == __file__  # the line that chose the name
        expected = solve(make_design(), "block-ipm")
        assert (found.solver, found.value) == (expected.solver, expected.value)

    def test_a_program_that_the_method_cannot_take_is_refused_by_the_current_name(self) -> None:
        with (
            pytest.warns(FormerNameWarning, match="'color-refinement'"),
            pytest.raises(SolverUnavailableError, match="color-refinement does not solve"),
        ):
            solve(make_design(), "classes")

    def test_it_is_a_warning_about_the_future_that_is_shown_by_default(self) -> None:
        assert issubclass(FormerNameWarning, FutureWarning)

    def test_a_sweep_takes_it_and_its_table_has_the_current_one(self, tmp_path: Path) -> None:
        with pytest.warns(FormerNameWarning) as caught:
            table = sweep(
                make_design, {"epsilon": [0.1, 0.5]}, solver="structured", out=tmp_path / "t.csv"
            )
        assert len(caught) == 1
        assert [row.solver for row in table.rows] == ["block-ipm"] * 2
        assert "structured" not in (tmp_path / "t.csv").read_text()

    def test_a_warm_start_of_a_former_name_has_the_current_one(self) -> None:
        restart = solve(make_design(), "block-ipm").restart
        with pytest.warns(FormerNameWarning):
            old = WarmStart("structured", restart.arrays)
        assert old.solver == "block-ipm"
        assert solve(make_design(0.6), warm_start=old).status is Status.OPTIMAL

    def test_the_command_line_takes_it_and_prints_the_warning_once(self, tmp_path: Path) -> None:
        (tmp_path / "p.csv").write_text("x,p\na,0.5\nb,0.3\nc,0.2\n")
        problem = ("--prior", tmp_path / "p.csv", "--epsilon", 0.5, "--utility", "hamming")
        found = run_fully("design", *problem, "--solver", "structured", "-o", tmp_path / "m.json")
        assert found.stderr.count("warning: the solver 'structured' is called 'block-ipm' now") == 1
        assert load(tmp_path / "m.json").solver == "block-ipm"


class TestFiles:
    @pytest.mark.parametrize("ending", [".json", ".npz"])
    def test_a_file_of_before_is_read_verified_and_shown_by_current_names(
        self, tmp_path: Path, ending: str
    ) -> None:
        path = tmp_path / f"before{ending}"
        found = solve(make_design(), "block-ipm")
        save_as_before(dataclasses.replace(found, status=Status.LIMIT_REACHED), path)
        assert verify_file(path).holds is True
        again = load(path)
        assert (again.solver, again.status) == ("block-ipm", Status.LIMIT_REACHED)
        assert again.restart.solver == "block-ipm"
        again.save(tmp_path / "new.json")
        metadata = json.loads((tmp_path / "new.json").read_text())["metadata"]
        assert (metadata["solver"], metadata["status"]) == ("block-ipm", "limit_reached")

    def test_the_stand_alone_verifier_reads_both(self, tmp_path: Path) -> None:
        found = dataclasses.replace(solve(make_design()), status=Status.LIMIT_REACHED)
        found.save(tmp_path / "new.json")
        save_as_before(found, tmp_path / "before.json")
        assert '"stopped"' in (tmp_path / "before.json").read_text()
        for name in ("new.json", "before.json"):
            code = subprocess.run(
                [sys.executable, str(verifier.__file__), str(tmp_path / name)],
                capture_output=True, check=False, text=True,
            )  # fmt: skip
            assert code.returncode == 0, code.stdout

    @pytest.mark.parametrize("ending", [".json", ".npz"])
    def test_a_certificate_of_the_former_kind_is_verified(
        self, tmp_path: Path, ending: str
    ) -> None:
        path = tmp_path / f"before{ending}"
        save_as_before(prove(P, PML(1.0), [[0.6, 0.4], [0.4, 0.6], [0.5, 0.5]]), path)
        assert verify_file(path).holds is True
        assert verify_file(path).kind == "compliance"
        assert load(path).to_dict()["certificate"]["kind"] == "compliance"

    def test_a_false_claim_of_the_former_kind_is_refuted(self, tmp_path: Path) -> None:
        path = tmp_path / "before.json"
        save_as_before(prove(P, PML(1.0), [[0.6, 0.4], [0.4, 0.6], [0.5, 0.5]]), path)
        content = path.read_text()
        assert '"epsilon": 1.0' in content
        path.write_text(content.replace('"epsilon": 1.0', '"epsilon": 0.1'))
        assert verify_file(path).holds is False

    def test_words_that_no_version_wrote_are_left_for_the_reader_to_refuse(self) -> None:
        strange: dict[str, Any] = {
            "status": ["stopped"],
            "solver": None,
            "certificate": {"kind": 3},
        }
        assert replace_former_names(strange) == strange
        assert replace_former_names({"certificate": "held"}) == {"certificate": "held"}
        assert replace_former_names({}) == {}
