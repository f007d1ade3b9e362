"""Sets of priors from their plain data, as certificates have it in files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pmlopt.arrays import Label, Positions
from pmlopt.errors import FileFormatError
from pmlopt.files import entry
from pmlopt.labels import labels_from_json
from pmlopt.prior import Prior
from pmlopt.symmetry.records import symmetric_from
from pmlopt.uncertainty.boxes import AllPriors, Box, MinimumMass
from pmlopt.uncertainty.joint_laws import JointLaws
from pmlopt.uncertainty.l1_ball import Center, L1Ball
from pmlopt.uncertainty.prior_set import PriorSet
from pmlopt.uncertainty.vertices import Vertices

KINDS = ("l1_ball", "box", "minimum_mass", "all_priors", "vertices")
"""The keys under which a set of priors stands, each with what it is made of."""


def set_from_record(record: Mapping[str, Any]) -> PriorSet:
    """The set of priors of a record: one of the keys `KINDS`, and `delta` beside it where there is one.

    Args:
        record: as `PriorSet.record` is, with `delta`.

    Raises:
        FileFormatError: it names no set, or lacks a part.
        PrivacyError, PriorError: its numbers are no set of priors.

    Examples:
        >>> ball = L1Ball([0.5, 0.5], 0.2)
        >>> set_from_record({**ball.record, "delta": None}) == ball
        True
    """
    delta = record.get("delta")
    named = [kind for kind in KINDS if kind in record]
    if len(named) != 1:
        raise FileFormatError(f"a set of priors has one of the keys {', '.join(KINDS)}, not {named}")
    data = entry(record, named[0], "the set of priors")
    if named[0] == "vertices":
        return Vertices(data)
    what = f"the set {named[0]!r}"
    if named[0] == "l1_ball":
        return L1Ball(_center(data), entry(data, "radius", what), delta)
    if named[0] == "box":
        return Box(entry(data, "lower", what), entry(data, "upper", what), delta, _names(data))
    if named[0] == "minimum_mass":
        return MinimumMass(entry(data, "size", what), entry(data, "mass", what))
    return AllPriors(entry(data, "size", what))


def joint_laws_from_record(record: Mapping[str, Any]) -> JointLaws:
    """The set of joint laws of a record: under `joint_laws`, and `delta` beside it where there is one."""
    data = entry(record, "joint_laws", "the set of joint laws")
    law, conditionals = (entry(data, key, "the set of joint laws") for key in ("law", "conditionals"))
    sets = [set_from_record(one) for one in conditionals]
    return JointLaws(set_from_record(law), sets, record.get("delta"))


def _names(data: Mapping[str, Any]) -> tuple[Label, ...] | None:
    """The labels of a set; None where its letters are known by position."""
    return labels_from_json(data["labels"]) if "labels" in data else None


def _center(data: Mapping[str, Any]) -> Prior | Center:
    """The centre of a ball: its counts where it has them, which must give its probabilities."""
    probabilities = entry(data, "center", "the ball")
    if isinstance(probabilities, Mapping):
        return symmetric_from(probabilities)
    names = _names(data) or Positions(len(probabilities))
    counts = data.get("counts")
    if counts is None and 0 in probabilities:
        return Center(Center.of(probabilities).probabilities, names)
    if counts is None:
        return Prior(probabilities, names)
    found = Center.of_counts(tuple(counts), names) if 0 in counts else Prior.from_counts(counts, names)
    if not np.array_equal(found.probabilities, np.asarray(probabilities, dtype=float)):
        raise FileFormatError("the probabilities of the centre are not its counts over their sum")
    return found
