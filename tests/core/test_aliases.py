"""Short paths, and names of other libraries: what an error says to write is there."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from typing import Any

import pytest

import pmlopt
from pmlopt.core.aliases import MEANT


def found_at(path: str) -> Any:
    """What stands at a path of names below pmlopt, which may be a module."""
    try:
        found: Any = pmlopt
        for name in path.split(".")[1:]:
            found = getattr(found, name)
    except AttributeError:
        return import_module(path)
    return found


@pytest.mark.parametrize("name", MEANT)
def test_a_name_of_another_library_is_none_here_and_its_answer_is(name: str) -> None:
    assert found_at(MEANT[name]) is not None
    with pytest.raises(AttributeError, match=r"(write|it is) pmlopt\."):
        getattr(pmlopt, name)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("pml_level", "write pmlopt.leakage_level"),
        ("verify", "write pmlopt.verify_file"),
        ("decode", "write pmlopt.estimate"),
        ("least_leakge", "did you mean pmlopt.least_leakage"),
    ],
)
def test_hints_point_at_what_was_meant(name: str, meant: str) -> None:
    with pytest.raises(AttributeError, match=meant):
        getattr(pmlopt, name)


def test_a_short_path_hints_too() -> None:
    with pytest.raises(
        AttributeError, match=r"pmlopt.utility has no 'MI': write pmlopt.MutualInformation"
    ):
        _ = pmlopt.utility.MI  # type: ignore[attr-defined]
    with pytest.raises(ImportError):
        from pmlopt.utility import MutualInfo  # type: ignore[attr-defined]  # noqa: F401


def test_short_paths_are_imported_first_as_later() -> None:
    code = (
        "import pmlopt.utility as u, sys\n"
        "from pmlopt.privacy import PML\nfrom pmlopt.uncertainty import Box\n"
        "from pmlopt.queries import ModularSum\nfrom pmlopt.noise import laplace_level\n"
        "from pmlopt.constraints import Invariant\nfrom pmlopt.estimation import estimate\n"
        "from pmlopt.closed_forms import randomized_response\nfrom pmlopt.measures import audit\n"
        "import pmlopt\nassert pmlopt.utility is u and u.MutualInformation is pmlopt.MutualInformation\n"
        "assert 'cvxpy' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
