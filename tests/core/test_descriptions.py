"""No message has an address, a function's repr or a whole matrix, whatever is given for an argument."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import pmlopt
from pmlopt import PML, Mechanism, Prior
from pmlopt.errors import InputError, MissingExtraError, PmloptError, SolverError

MAX_LENGTH = 1000
"""Characters of a message: a long paragraph."""

ODD: dict[str, Any] = {
    "lambda": lambda epsilon: epsilon,
    "matrix": np.ones((50, 50)) * 0.1234567890123,
    "object": object(),
    "list of objects": [object(), object()],
    "rows": [[0.1234567890123] * 50 for _ in range(50)],
    "text": "x" * 5000,
    "mapping": {"a": object(), "b": lambda: 0},
    "class": PML,
}
GOOD: dict[str, Any] = {
    "prior": Prior([0.5, 0.3, 0.2], ["a", "b", "c"]),
    "mechanism": Mechanism(np.eye(3), ["a", "b", "c"], ["a", "b", "c"]),
    "privacy": PML(0.5),
    "requirement": PML(0.5),
    "utility": "hamming",
    "epsilon": 0.5,
    "delta": 0.1,
    "samples": 100,
    "query": None,
}
"""Arguments that fit, so that the odd one is what is complained of."""

SKIPPED = {"explore", "release", "check", "load", "sweep"}
"""Names that write or read files, or call what they are given."""


def callables() -> Iterator[tuple[str, Callable[..., Any]]]:
    """The public functions and classes of pmlopt and of its parts."""
    seen = set()
    parts = [pmlopt, *(getattr(pmlopt, name) for name in vars(pmlopt)["_ROOMS"])]
    for part in parts:
        for name in getattr(part, "__all__", ()):
            found = getattr(part, name)
            if callable(found) and not isinstance(found, ModuleType) and id(found) not in seen:
                seen.add(id(found))
                if name not in SKIPPED and not inspect.isabstract(found):
                    yield f"{part.__name__}.{name}", found


CALLABLES = dict(callables())


def calls(function: Callable[..., Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Arguments with one odd value among others that fit."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return
    named = [one for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    needed = {one.name for one in named if one.default is one.empty}
    for one in named:
        for kind, value in ODD.items():
            fitting = {name: GOOD.get(name, 0.5) for name in needed if name != one.name}
            yield f"{one.name} is {kind}", {**fitting, one.name: value}


def faults(message: str) -> list[str]:
    """What a message should not have."""
    found = [word for word in (" at 0x", "<lambda>", "array([[") if word in message]
    return found if len(message) <= MAX_LENGTH else [*found, f"{len(message)} characters"]


@pytest.mark.parametrize("name", CALLABLES)
@pytest.mark.filterwarnings("ignore")
def test_messages_have_no_addresses_and_no_matrices(name: str) -> None:
    found = {}
    for what, arguments in calls(CALLABLES[name]):
        try:
            CALLABLES[name](**arguments)
        except PmloptError as error:
            if faults(str(error)):
                found[what] = (faults(str(error)), str(error)[:300])
        except Exception:
            continue
    assert found == {}


@pytest.mark.parametrize("kind", ODD)
def test_every_error_of_the_family_has_a_readable_message(kind: str) -> None:
    def own(epsilon: float) -> float:
        return epsilon

    value = ODD[kind]
    for error in (PmloptError, InputError, SolverError, MissingExtraError):
        for quoted in (value, [value], {"a": value}, own, 10**3000):
            message = str(error(f"the bound is {quoted!r}: give a number"))
            assert faults(message) == []
            assert message.startswith("the bound is ")
            assert message.endswith(": give a number")


def test_short_values_stay_as_they_are() -> None:
    for value in (0.5, [0.25, 0.75], np.eye(2), "x" * 50, {"a": 1}, (1, "b"), "the range [0, 1]"):
        assert str(InputError(f"not {value!r}: give a number")) == f"not {value!r}: give a number"
    copy = pickle.loads(pickle.dumps(InputError(f"not {object()!r}")))
    assert str(copy) == "not an object of the class object"
