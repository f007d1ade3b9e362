"""Families of requirements: the same requirement at every level epsilon."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from pmlopt.core.descriptions import describe_value
from pmlopt.core.numbers.arrays import MAX_EXPONENT
from pmlopt.core.records.fields import find_tagged_classes, get_fields
from pmlopt.core.suggestions import did_you_mean
from pmlopt.data.secret import Secret
from pmlopt.errors import PrivacyError
from pmlopt.model.privacy import LIP, PML, Requirement
from pmlopt.model.uncertainty import PriorSet
from pmlopt.model.uncertainty.joint_laws import JointLaws

Family: TypeAlias = Requirement | type[Requirement] | str | Callable[[float], Requirement]
"""A requirement at any level, its class, its name, or a function of epsilon."""

R = TypeVar("R", bound=Requirement)

MAX_LEVEL = MAX_EXPONENT
"""The largest level of any family in nats: beyond it, e^epsilon is no float."""


def get_level(requirement: Requirement) -> float | None:
    """Return the single level of a requirement, in nats; None where it has none or several.

    Examples:
        >>> from pmlopt import LDP, LIP
        >>> get_level(LDP(0.5)), get_level(LIP(0.2, 0.2)), get_level(PML([0.1, 0.2]))
        (0.5, 0.2, None)
    """
    return requirement.find_single_level()


def replace_level(requirement: R, epsilon: float) -> R:
    """Return the requirement of the same family at another level.

    Args:
        requirement: one that `get_level` has a number for, or a `LIP`, both of whose bounds it replaces.
        epsilon: in nats.

    Examples:
        >>> from pmlopt import LDP
        >>> replace_level(LDP(0.5), 1.0)
        LDP(epsilon=1.0)
    """
    return requirement.with_epsilon(float(epsilon))


def parse_family(
    privacy: Family | None, over: PriorSet | JointLaws | None = None, about: Secret | None = None
) -> Requirement:
    """Return the family of a requirement as its member at level 0.

    Args:
        privacy: the family; PML where it is left out. The level of a requirement is not looked at.
        over: the set of priors, of a family that is given by its name or class, or left out.
        about: the secret, of the same.

    Raises:
        PrivacyError: it is no family of requirements with one level, or needs more than is given.

    Examples:
        >>> parse_family(None), parse_family("ldp"), parse_family(lambda epsilon: LIP(epsilon, epsilon))
        (PML(epsilon=0.0, over=None), LDP(epsilon=0.0), LIP(lower=0.0, upper=0.0))
    """
    own = {name: value for name, value in (("over", over), ("about", about)) if value is not None}
    if privacy is None or isinstance(privacy, str | type):
        return _check_level(_make_requirement(_find_requirement_class(privacy), own))
    if own:
        raise PrivacyError(
            f"`{'` and `'.join(own)}` belong to the requirement that is given: write them into it, such as "
            "RenyiPML(2, 0, over=...)"
        )
    if isinstance(privacy, Requirement):
        return _check_level(privacy)
    if not callable(privacy):
        raise PrivacyError(
            f"the requirement is {describe_value(privacy)}: give a class such as LDP, a requirement such as "
            "PML(0, over=...), or a function of epsilon"
        )
    return _evaluate_family_function(privacy)


def _find_requirement_class(privacy: str | type | None) -> type[Requirement]:
    """Look up the requirement class of a family by name or class."""
    if privacy is None:
        return PML
    if isinstance(privacy, str):
        known = find_tagged_classes(Requirement)
        if privacy not in known:
            near = did_you_mean(privacy, known, f"use one of {', '.join(known)}")
            raise PrivacyError(f"the requirement {privacy!r} is not known: {near}")
        return known[privacy]
    if not issubclass(privacy, Requirement):
        raise PrivacyError(
            f"{privacy.__name__} is no requirement: give one such as PML, LDP or RenyiPML"
        )
    return privacy


def _make_requirement(kind: type[Requirement], own: dict[str, Any]) -> Requirement:
    """Build the requirement of a class at level 0."""
    if kind is LIP and not own:
        return LIP(0.0, 0.0)
    known = {one.name for one in get_fields(kind)}
    for name in own:
        if name not in known:
            raise PrivacyError(f"{kind.__name__} has no `{name}`: leave it out, or take PML")
    needed = [
        one.name for one in get_fields(kind) if one.required and one.name not in ("epsilon", *own)
    ]
    if "epsilon" not in known or needed:
        more = f"it needs {' and '.join(needed)} too" if needed else "it has no epsilon"
        raise PrivacyError(
            f"{kind.__name__} does not define a family of requirements: {more}. Give a requirement with "
            "all of it, at any level"
        )
    found: Requirement = kind(epsilon=0.0, **own)  # type: ignore[call-arg]
    return found


def _check_level(requirement: Requirement) -> Requirement:
    """Check that the requirement has exactly one level, and return it."""
    if get_level(requirement) is None:
        raise PrivacyError(
            f"a requirement of the kind {requirement.name!r} with several limits has no single level to "
            "search for: give one whose epsilon is one number"
        )
    return requirement


def _evaluate_family_function(family: Callable[[float], Any]) -> Requirement:
    """Evaluate a family given as a function at level 0; check that only the level varies."""
    name = getattr(family, "__name__", type(family).__name__)
    try:
        # three levels: a function that moves another number too shows it at one of them
        found = [family(level) for level in (0.0, 0.5, 1.0)]
    except PrivacyError:
        raise
    except Exception as cause:  # a function of a person may raise anything
        raise PrivacyError(
            f"the function {name} for the requirement fails on a level: {type(cause).__name__}: {cause}"
        ) from cause
    if not all(isinstance(one, Requirement) for one in found):
        raise PrivacyError(
            f"the function {name} for the requirement returns {type(found[0]).__name__} for a level: it "
            "must return a requirement, as `lambda epsilon: LDP(epsilon)` does. A utility comes after the "
            "requirement"
        )
    template = _check_level(found[0])
    if not all(
        replace_level(template, level) == one
        for level, one in zip((0.0, 0.5, 1.0), found, strict=True)
    ):
        raise PrivacyError(
            f"the function {name} moves more than the level of its requirement: all but epsilon must stay"
        )
    return template


def is_same_family(one: Requirement, other: Requirement) -> bool:
    """Return whether two requirements differ at most in their levels.

    Examples:
        >>> from pmlopt import LDP
        >>> is_same_family(LDP(0.5), LDP(1.0)), is_same_family(LDP(0.5), PML(0.5))
        (True, False)
    """
    if get_level(one) is None or get_level(other) is None:
        return False
    return replace_level(one, 0.0) == replace_level(other, 0.0)


def round_level_up(level: float) -> float:
    """Round a level up by a few units in the last place."""
    # the ulp of 0 is for a level of 0, which no factor moves
    return min(MAX_LEVEL, level * (1 + 2.0**-50) + math.ulp(0.0))
