"""What the start of a command may load: most of what a short one takes is its imports."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from commands import find_command

from pmlopt.cli.group import COMMANDS

COMMON = """completion exits group help_pages meant_names number_option options printing reading
    strict_command targets terminal"""
REQUIREMENTS = """basic_columns mean_bounds metric_privacy named_bounds pair_weights ratio_blocks ratio_bound
    ratios requirement violations"""
EXACT = "exact.envelope_repair exact.equality_rounding exact.grid_matrix exact.rounding"
REPORTS = "reports.baselines reports.pages reports.standalone"
ANY = None
DESIGN = "design --prior prior.csv --epsilon 0.5 --utility hamming"

MAY_LOAD: Mapping[str, Mapping[str, str | None]] = {
    "--help": {
        "cli": "exits group help_pages meant_names strict_command terminal",
        "core": "descriptions failures lazy_imports suggestions",
        "errors": ANY,
    },
    DESIGN: {
        "cli": f"{COMMON} data_options design privacy_options published_priors",
        "core.matrices": "formats matrix_file text_tables",
        "core": ANY,
        "data": ANY,
        "errors": ANY,
        "measures": "estimable leakage outcomes",
        "model.closed_forms": "catalogue extremal local_privacy",
        "model.constraints": ANY,
        "model.privacy": REQUIREMENTS,
        "model.uncertainty": "joint_laws prior_set",
        "model.utility": "given linear",
        "programs.linear": """added_rows build_certificate certificate color_refinement columns
            feasible formulation methods program ratio_rows""",
        "programs": """best_feasible certificate claims design_program designs exact.rounding
            method_runs program purification registry reports.baselines reports.pages result solving""",
        "solvers": "cvxpy_interface highs solver_result structured.block_program",
    },
    "verify mechanism.json": {
        "cli": f"{COMMON} export verification",
        "core.matrices": "formats matrix_file text_tables",
        "core": ANY,
        "data": ANY,
        "errors": ANY,
        "measures": ANY,
        "model.constraints": ANY,
        "model.privacy": ANY,  # a file may have any
        "model.uncertainty": "center dual_measures joint_laws joint_measures prior_set support_functions",
        "model.utility": ANY,
        "programs.linear": "certificate color_refinement columns",
        "programs": f"""certificate claims {EXACT} declared_parts plots program purification registry
            {REPORTS} result""",
        "solvers": """approximate_minimum cvxpy_interface highs solver_result structured.block_program
            structured.factors""",
        "verification": "verify_saved",
    },
    "audit matrix.csv --prior prior.csv --epsilon 0.5": {
        "cli": f"""{COMMON} audit audit_tables composition data_options estimation export privacy_options
            program_audit sample_sizes verification""",
        "core.matrices": "formats matrix_file text_tables",
        "core": ANY,
        "data": ANY,
        "errors": ANY,
        "measures": ANY,
        "model.constraints": ANY,
        "model.privacy": ANY,
        "model.uncertainty": "center dual_measures joint_laws joint_measures prior_set support_functions",
        "model.utility": ANY,
        "programs.envelope": "certificate masses program",
        "programs.linear": "certificate color_refinement columns",
        "programs": f"""best_feasible certificate claims compliance {EXACT} declared_parts method_runs plots
            program purification registry {REPORTS} result solving""",
        "solvers": """approximate_minimum cvxpy_interface highs solver_result structured.block_program
            structured.factors""",
    },
}
"""The modules of each folder of pmlopt that a command may load, and those of the folders in it that have no
line; of a folder without a line, none."""

LOADED = """
import json, sys
from pmlopt.cli import main
try:
    main(sys.argv[1:], prog_name="pmlopt")
except SystemExit as ended:
    assert not ended.code, ended.code
print("\\n" + json.dumps(sorted(sys.modules)))
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "prior.csv").write_text("answer,count\nyes,40\nno,60\n")
    (tmp_path / "matrix.csv").write_text("truth,yes,no\nyes,0.8,0.2\nno,0.3,0.7\n")
    made = f"{DESIGN} -o mechanism.json".split()
    command = [sys.executable, "-m", "pmlopt", *made]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    return tmp_path


def list_loaded(folder: Path, command: str) -> list[str]:
    """The modules that a command loads."""
    words = [sys.executable, "-c", LOADED, *command.split()]
    done = subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True)
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    return found


def is_allowed(module: str, allowed: Mapping[str, str | None]) -> bool:
    """Whether a module is among those that a command may load, or holds one of them."""
    fits = [one for one in allowed if f"{module}.".startswith(f"{one}.")]
    if not fits:
        return any(one.startswith(f"{module}.") for one in allowed)
    folder = max(fits, key=len)
    names = allowed[folder]
    rest = module[len(folder) + 1 :]
    return (
        names is None or not rest or any(f"{one}.".startswith(f"{rest}.") for one in names.split())
    )


@pytest.mark.parametrize("command", MAY_LOAD)
def test_a_command_loads_what_it_needs(files: Path, command: str) -> None:
    loaded = list_loaded(files, command)
    own = [module.removeprefix("pmlopt.") for module in loaded if module.startswith("pmlopt.")]
    beyond = [module for module in own if not is_allowed(module, MAY_LOAD[command])]
    assert beyond == [], "load these where something needs them, or name them here"
    heavy = {"scipy", "cvxpy", "pyarrow", "narwhals", "rich", "matplotlib", "pandas"}
    heavy |= {"numpy"} if command == "--help" else set()
    assert heavy & set(loaded) == set()


FIRST_DESIGN = """
import sys
from pmlopt import PML, Prior, design, solve
result = solve(design(Prior.from_counts({"a": 2, "b": 1}), PML(0.5), "hamming"))
assert result.certificate.verify() and result.mechanism.sample(["a"], seed=1) in (["a"], ["b"])
readers = {"files", "matrices.formats", "matrices.text_tables", "records.converters", "records.record"}
found = {f"pmlopt.core.{one}" for one in readers} | {"csv", "json", "pathlib", "pkgutil", "unicodedata"}
assert not found & set(sys.modules), found & set(sys.modules)
"""


def test_a_first_design_loads_nothing_that_reads_files() -> None:
    subprocess.run([sys.executable, "-c", FIRST_DESIGN], check=True)


def test_the_table_of_commands_is_that_of_the_modules() -> None:
    assert list(COMMANDS) == sorted(COMMANDS)
    for name, (module, sentence) in COMMANDS.items():
        command = find_command(name)
        assert command.name == name
        assert " ".join((command.help or "").split("\n\n")[0].split()) == sentence
        function = getattr(command.callback, "__module__", "")
        assert function in (f"pmlopt.cli.{module}", "pmlopt.cli.options")


KINDS = """
import pkgutil, sys
from importlib import import_module
from pmlopt.core.records.fields import find_tagged_classes
module, name = sys.argv[1:]
base = getattr(import_module(module), name)
found = set(find_tagged_classes(base))
for one in pkgutil.walk_packages(import_module("pmlopt.model").__path__, "pmlopt.model."):
    import_module(one.name)
for one in pkgutil.walk_packages(import_module("pmlopt.data").__path__, "pmlopt.data."):
    import_module(one.name)
assert found == set(find_tagged_classes(base)) != set(), set(find_tagged_classes(base)) - found
"""


@pytest.mark.parametrize(
    ("module", "base"),
    [
        ("pmlopt.model.privacy", "Requirement"),
        ("pmlopt.model.privacy.requirement", "Requirement"),
        ("pmlopt.model.utility.linear", "Utility"),
        ("pmlopt.model.utility", "SubConvex"),
        ("pmlopt.model.uncertainty.prior_set", "PriorSet"),
        ("pmlopt.model.queries.query", "Query"),
        ("pmlopt.data.symmetry.prior", "PairSpace"),
    ],
)
def test_all_classes_of_a_kind_are_known_to_whoever_has_its_base(module: str, base: str) -> None:
    subprocess.run([sys.executable, "-c", KINDS, module, base], check=True)
