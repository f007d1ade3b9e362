"""Utilities by name, and as records."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from refusals import refused

from pmlopt import (
    PML,
    EstimationError,
    ExpectedGain,
    ExpectedLoss,
    MutualInformation,
    design,
    solve,
)
from pmlopt.core.records.converters import to_plain
from pmlopt.core.records.fields import Context
from pmlopt.core.records.record import read_record
from pmlopt.errors import UtilityError
from pmlopt.model.utility import (
    LOSSES,
    CoordinateGain,
    CoordinateLoss,
    DisplacementLoss,
    DistanceLoss,
    FInformation,
    GuessingProbability,
    SumOfParts,
    Utility,
    absolute,
    as_utility,
    hamming,
    list_informations,
    match,
)
from pmlopt.model.utility.estimation_error import build_workload_rows
from pmlopt.programs.least_leakage.program import least_leakage

UTILITIES = [
    ExpectedLoss(hamming), ExpectedGain(match), ExpectedGain([[1, 0], [0, 2]]),
    ExpectedLoss({"a": {"u": 1, "v": 2}, "b": {"u": 0, "v": 4}}), CoordinateLoss(absolute),
    CoordinateGain([[1.0, 0.0], [0.0, 1.0]]), DisplacementLoss([0, 1, 1]),
    SumOfParts(CoordinateLoss(hamming), DisplacementLoss([0, 1])), EstimationError(),
    EstimationError("prefix"), EstimationError({"a": 1.0, "b": 2.0}), EstimationError(criterion="D"),
    DistanceLoss(), DistanceLoss(np.square), GuessingProbability(), MutualInformation(),
]  # fmt: skip


@pytest.mark.parametrize("utility", UTILITIES, ids=lambda one: type(one).__name__)
def test_a_utility_is_its_record(utility: Utility) -> None:
    for context in (Context(), Context(complete=False)):
        again = read_record(Utility, to_plain(utility, context), "utility", context)
        assert again == utility
        assert hash(again) == hash(utility)
    assert [one for one in UTILITIES if one == utility] == [utility]
    with pytest.raises(ValueError, match="cannot be written"):
        to_plain(ExpectedLoss(lambda x, y: float(x - y)))


def test_designs_take_utilities_by_name_and_a_function_is_a_loss() -> None:
    prior, privacy = [0.5, 0.3, 0.2], PML(0.5)
    names: Any = (*LOSSES, "match", *list_informations(), "estimation-error")
    for name in names:
        assert design(prior, privacy, name).utility == as_utility(name)
    program = design([0.5, 0.5], PML(0.5), absolute)
    assert program.utility == ExpectedLoss(absolute)
    floor: Any = least_leakage([0.5, 0.5], "match", expected=0.75)
    assert solve(floor).value == pytest.approx(np.log(1.5), abs=1e-9)


def test_what_is_no_utility_is_refused_with_what_is_near() -> None:
    said: list[tuple[str, Any]] = [
        ("did you mean 'hamming'", "haming"), ("did you mean 'mutual-information'", "mutual-info"),
        ("'prefixes' is not known", "estimation-error:prefixes"), ("use hamming, absolute", "zzz"),
        (r"call it, MutualInformation\(\.\.\.\)", MutualInformation), ("the utility is None", None),
        (r"ExpectedLoss\(\.\.\.\) of a matrix", [[0.0, 1.0], [1.0, 0.0]]),
    ]  # fmt: skip
    for message, given in said:
        refused(UtilityError, design, message, ([0.5, 0.5], PML(0.5), given))
        with pytest.raises(UtilityError):
            least_leakage([0.5, 0.5], given, expected=0.5)


def test_an_information_of_another_module_has_its_name() -> None:
    class Cubic(FInformation):
        kind: ClassVar[str] = "cubic-for-tests"

        def __init__(self) -> None:
            super().__init__(lambda lifts: lifts**3 - 1)

    assert as_utility("cubic-for-tests") == Cubic()
    assert Cubic().name == "cubic-for-tests"
    del Cubic.kind


def test_rows_of_a_frame_keep_their_names() -> None:
    frame = pd.DataFrame([[1, -1]], index=["no less yes"], columns=["no", "yes"])
    assert build_workload_rows(frame, ("no", "yes")).names == ("no less yes",)
    assert build_workload_rows({"both": {"yes": 1, "no": 1}}, ("no", "yes")).names == ("both",)
    assert build_workload_rows([[1, -1]], ("no", "yes")).names == (0,)
