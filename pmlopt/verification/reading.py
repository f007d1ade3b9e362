"""What the readers of several kinds of certificates share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from pmlopt.core.arrays import BoolArray, FloatArray, float_array
from pmlopt.core.files import entry
from pmlopt.core.records import read
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.errors import FileFormatError

Record = Mapping[str, Any]
WHAT = "the certificate"


def numbers(values: Any, ndim: int, what: str) -> FloatArray:
    """Finite numbers of a file as an array."""
    return float_array(values, ndim, what, FileFormatError)


def keyed(data: Any, keys: tuple[str, ...], what: str) -> Record:
    """A table with exactly these keys."""
    if not isinstance(data, Mapping) or set(data) != set(keys):
        raise FileFormatError(f"{what} must have the keys {', '.join(keys)}, not {data!s:.80}")
    return data


def optional(values: Any, ndim: int, what: str) -> FloatArray | None:
    """The same where there are any."""
    return None if values is None else numbers(values, ndim, what)


def flags(values: Any, shape: tuple[int, ...]) -> BoolArray:
    """Truth values of a file."""
    found = np.array(values)
    if found.dtype != bool or found.shape != shape:
        raise FileFormatError(f"the allowed pairs must be truth values in the shape {shape}")
    return found


def claimed(record: Record, maximised: bool = True) -> dict[str, Any]:
    """Value and bound; a bound that is null is infinite."""
    value, bound = (entry(record, key, WHAT) for key in ("value", "bound"))
    if not all(type(each) in (int, float) for each in (value, 0 if bound is None else bound)):
        raise FileFormatError(f"value and bound must be numbers, not {value!r} and {bound!r}")
    nothing = math.inf if maximised else -math.inf
    return {"value": float(value), "bound": nothing if bound is None else float(bound)}


def prior_of(record: Record, mechanism: Mechanism) -> Prior:
    """The prior, on the letters of the mechanism."""
    found = read(Prior, entry(record, "prior", WHAT), "prior")
    if found.labels != mechanism.inputs:
        raise FileFormatError("the prior has other letters than the mechanism, or in another order")
    return found


def gain_or_loss(record: Record) -> tuple[Record, bool]:
    """The utility of a record, and whether it is a gain."""
    utility: Record = entry(record, "utility", WHAT)
    if utility.get("kind") not in ("gain", "loss"):
        raise FileFormatError(f"the utility is of the kind {utility.get('kind')!r}, not gain or loss")
    return utility, utility["kind"] == "gain"
