"""The conversion of user input to a utility: an object, a name, or a loss function of two labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pmlopt.core.descriptions import describe_value
from pmlopt.core.frames import to_narwhals
from pmlopt.core.records.fields import find_tagged_classes, get_fields
from pmlopt.core.suggestions import did_you_mean
from pmlopt.errors import UtilityError
from pmlopt.model.utility.linear import LOSSES, ExpectedGain, ExpectedLoss, Utility, match

if TYPE_CHECKING:
    from pmlopt.model.utility.subconvex import SubConvex

ABBREVIATIONS = {
    "mi": "mutual-information",
    "information": "mutual-information",
    "tv": "total-variation",
    "chi2": "chi-square",
    "chi-squared": "chi-square",
    "0-1": "hamming",
    "zero-one": "hamming",
    "l1": "absolute",
    "l2": "squared",
    "mse": "squared",
    "bayes-vulnerability": "guessing-probability",
    "accuracy": "match",
}
"""Other names of utilities, in lower case; the names of gains and losses are those of the expected one."""

UtilityName: TypeAlias = Literal[
    # losses and the gain, of which the expected value is meant
    "hamming", "absolute", "squared", "match",
    # informations
    "mutual-information", "total-variation", "chi-square", "hellinger", "guessing-probability",
    # the error of an estimate, of all frequencies or of a workload
    "estimation-error",
    "estimation-error:identity", "estimation-error:prefix", "estimation-error:range",
    "estimation-error:mean", "estimation-error:marginals",
    # other names
    "MI", "mi", "information", "tv", "chi2", "chi-squared", "0-1", "zero-one", "l1", "l2", "mse",
    "bayes-vulnerability", "accuracy",
]  # fmt: skip
"""The names of pmlopt's utilities, from which an editor completes; `as_utility` takes any text."""

UtilityLike: TypeAlias = Utility | UtilityName | Callable[[Any, Any], float]
"""A utility, the name of one, or a loss as a function of letter and output."""


def list_informations() -> dict[str, Callable[[], SubConvex]]:
    """List the named sub-convex utilities, including those of imported packages.

    Examples:
        >>> sorted(list_informations())[:3]
        ['chi-square', 'guessing-probability', 'hellinger']
    """
    from pmlopt.model.utility.subconvex import SubConvex

    known: dict[str, Any] = {**find_tagged_classes(SubConvex)}
    return {name: kind for name, kind in known.items() if not get_fields(kind)}


def as_utility(given: UtilityLike | str) -> Utility:
    """Convert user input to a utility: an object, a name, or a loss d(x, y) of two labels.

    The names are those of losses ("hamming"), of the gain "match", of informations ("mutual-information"),
    and "estimation-error", after which a colon and a workload may follow. They are read in any case, with
    hyphens, spaces or underscores, and so are `ABBREVIATIONS` such as "MI". For a type checker `UtilityName`
    lists those of pmlopt: text that a program reads, and names of other packages, are converted here first.

    Raises:
        UtilityError: the name is not known, with the nearest that is; or a matrix or a class is given.

    Examples:
        >>> as_utility("hamming") == as_utility(LOSSES["hamming"]) == ExpectedLoss(LOSSES["hamming"])
        True
        >>> as_utility("mutual-informatoin")
        Traceback (most recent call last):
        ...
        pmlopt.errors.UtilityError: the utility 'mutual-informatoin' is not known: did you mean
        'mutual-information'?
    """
    if isinstance(given, Utility):
        return given
    if isinstance(given, str):
        return _find_named_utility(given)
    if isinstance(given, type):
        raise UtilityError(
            f"the utility is the class {given.__name__}: call it, {given.__name__}(...)"
        )
    if callable(given):
        return ExpectedLoss(given)
    if _is_table(given):
        raise UtilityError(
            f"the utility is a bare matrix, {describe_value(given)}, and it is unclear whether more is "
            "better: write ExpectedGain(...) of a matrix of gains, or ExpectedLoss(...) of a matrix of losses"
        )
    raise UtilityError(
        f"the utility is {describe_value(given)}: give ExpectedGain(...) or ExpectedLoss(...) of a matrix or "
        'a function, a sub-convex one such as MutualInformation(), or a name such as "hamming"'
    )


def _is_table(given: Any) -> bool:
    """Return whether the input is a table of numbers: array, frame, list of rows or mapping."""
    if hasattr(given, "__array__") or to_narwhals(given) is not None:
        return True
    rows = list(given.values()) if isinstance(given, dict) else given
    return isinstance(rows, list | tuple) and all(
        isinstance(row, list | tuple | dict) for row in rows
    )


def _find_named_utility(given: str) -> Utility:
    """Look up a utility by name."""
    name = "-".join(given.lower().replace("_", " ").split()) if given.isascii() else given
    name = ABBREVIATIONS.get(name, name)
    if name in LOSSES:
        return ExpectedLoss(LOSSES[name])
    if name == match.__name__:
        return ExpectedGain(match)
    from pmlopt.model.utility.estimation_error import WORKLOADS, EstimationError

    kind, _, workload = name.partition(":")
    if kind == EstimationError.kind:
        return EstimationError(workload or None)
    known = list_informations()
    if name in known:
        return known[name]()
    names = [*LOSSES, match.__name__, *known, EstimationError.kind]
    names += [f"{EstimationError.kind}:{workload}" for workload in WORKLOADS]
    near = did_you_mean(name, names, f"use {', '.join(names)}, or a matrix")
    raise UtilityError(f"the utility {given!r:.80} is not known: {near}")
