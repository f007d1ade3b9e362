"""Ledgers as NPZ files, with a digest of all that they hold."""

from __future__ import annotations

import hashlib
import io
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pmlopt.core import files, records
from pmlopt.core.arrays import FloatArray, IntArray, nonnegative
from pmlopt.data.prior import Prior
from pmlopt.errors import FileFormatError, InputError, PrivacyError
from pmlopt.releases.histories import Histories

FORMAT = "pmlopt-ledger"
VERSION = 2
IDENTITY_BYTES = 32
"""Of the digest of a release, SHA-256."""


@dataclass(frozen=True)
class LedgerState:
    """What a ledger holds.

    Attributes:
        prior: on N letters.
        total: in nats, or None.
        histories: of the people.
        identities: of the releases, in their order.
        publishing: the names of drafts, each with the name that it gets once the ledger is written.
    """

    prior: Prior
    total: float | None
    histories: Histories
    identities: tuple[bytes, ...] = ()
    publishing: tuple[tuple[str, str], ...] = ()


def identity_of(matrix: FloatArray, columns: IntArray, members: IntArray) -> bytes:
    """A digest of a release: the mechanism on all letters, and the place of each person's outcome."""
    order = np.argsort(members, kind="stable")
    return _digest({}, matrix.astype("<f8"), columns[order].astype("<i8"), members[order].astype("<i8"))


def write(path: str | os.PathLike[str], state: LedgerState) -> str:
    """Write a ledger, whole or not at all; its digest."""
    files.check_labels(path, state.prior.labels)
    about: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "prior": records.plain(state.prior),
        "total": state.total,
        "publishing": state.publishing,
    }
    about = json.loads(files.json_bytes(about))
    arrays: dict[str, Any] = {
        "likelihoods": np.ascontiguousarray(state.histories.likelihoods, dtype="<f8"),
        "rounding": np.ascontiguousarray(state.histories.rounding, dtype="<f8"),
        "history": np.ascontiguousarray(state.histories.place, dtype="<i8"),
        "identities": np.frombuffer(b"".join(state.identities), np.uint8).reshape(-1, IDENTITY_BYTES),
    }
    about["digest"] = _digest(about, *arrays.values()).hex()
    stream = io.BytesIO()
    np.savez(stream, about=np.frombuffer(files.json_bytes(about), dtype=np.uint8), **arrays)
    files.write_whole(path, stream.getvalue())
    return str(about["digest"])


def digest_of(path: Path) -> str | None:
    """The digest that a ledger's file says it has; None where nothing is there."""
    if not path.exists():
        return None
    try:
        with np.load(path, allow_pickle=False) as stored:
            return str(json.loads(stored["about"].tobytes())["digest"])
    except Exception:  # see `read`
        return "none"


def read(path: str | os.PathLike[str]) -> tuple[LedgerState, str]:
    """Read a ledger and its digest, and refuse what is none, or cut short, or changed.

    Raises:
        FileFormatError: see there.
    """
    files.ending_of(path, (".npz",))
    content = files.read_bytes(path)
    try:
        files.check_expansion(path, content)
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        about = json.loads(arrays.pop("about").tobytes())
        if about["format"] != FORMAT or about["version"] != VERSION:
            raise ValueError(f"its format is {about['format']!r}, version {about['version']!r}")
        digest = str(about.pop("digest"))
    except FileFormatError:
        raise
    except Exception as cause:  # what zip, npy and json readers raise on foreign bytes has no bounds
        raise FileFormatError(f"{path}: is not a whole ledger of version {VERSION}: {cause}") from None
    if digest != _digest(about, *arrays.values()).hex():
        raise FileFormatError(f"{path}: was changed after it was written: its digest is another")
    try:
        return _state(len(content), about, **arrays), digest
    except (InputError, KeyError, TypeError, ValueError) as cause:
        raise FileFormatError(f"{path}: is not a ledger: {cause}") from None


def _digest(about: dict[str, Any], *arrays: Any) -> bytes:
    whole = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for array in arrays:
        whole.update(f"{array.shape} {array.dtype.str}".encode())
        whole.update(np.ascontiguousarray(array).data)
    return whole.digest()


def _state(
    room: int, about: dict[str, Any], likelihoods: Any, rounding: Any, history: Any, identities: Any
) -> LedgerState:
    """The parts of a file of so many bytes, of which every number is looked at."""
    prior = records.read(Prior, about["prior"], "prior", records.Context(room=room))
    count = len(likelihoods)
    kinds = {
        "likelihoods": (likelihoods, "<f8", (count, prior.size)),
        "rounding": (rounding, "<f8", (count,)),
        "history": (history, "<i8", (history.size,)),
        "identities": (identities, "|u1", (len(identities), IDENTITY_BYTES)),
    }
    for name, (array, kind, shape) in kinds.items():
        if array.dtype.str != kind or array.shape != shape:
            raise ValueError(
                f"its {name} are {array.dtype.str} of the shape {array.shape}, not {kind} of {shape}"
            )
    if not (likelihoods.max(axis=1) == 0).all():
        raise ValueError("the largest of the likelihoods of a history is not 0")
    if not ((rounding >= 0) & (rounding < np.inf)).all():
        raise ValueError("a bound on rounding is negative, or no number")
    if not history.size or not ((history >= 0) & (history < count)).all():
        raise ValueError(f"the history of a person is none of the {count}")
    total, publishing = about["total"], [(draft, target) for draft, target in about["publishing"]]
    if not all(isinstance(name, str) for pair in publishing for name in pair):
        raise ValueError("what is to be published has no name")
    return LedgerState(
        prior,
        None if total is None else nonnegative(total, "the total", PrivacyError),
        Histories(likelihoods, rounding, history),
        tuple(row.tobytes() for row in identities),
        tuple(publishing),
    )
