"""Ledgers as NPZ files, with a digest of all that they hold."""

from __future__ import annotations

import hashlib
import io
import json
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from pmlopt import files
from pmlopt.arrays import FloatArray, IntArray, Positions
from pmlopt.errors import FileFormatError, InputError
from pmlopt.labels import labels_from_json
from pmlopt.prior import Prior

FORMAT = "pmlopt-ledger"
VERSION = 1


@dataclass(frozen=True)
class LedgerFile:
    """What a ledger's file holds: the prior, the total, and the likelihoods of each history."""

    prior: Prior
    total: float | None
    releases: int
    likelihoods: FloatArray
    history: IntArray


def write(path: str | os.PathLike[str], state: LedgerFile) -> None:
    """Write a ledger, whole or not at all."""
    files.ending_of(path, (".npz",))
    files.check_labels(path, state.prior.labels)
    prior = state.prior
    about: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        **prior.record,
        "unnamed": isinstance(prior.labels, Positions),
        "total": state.total,
        "releases": state.releases,
    }
    likelihoods = np.ascontiguousarray(state.likelihoods, dtype="<f8")
    history = np.ascontiguousarray(state.history, dtype="<i8")
    about["digest"] = _digest(about, likelihoods, history)
    stream = io.BytesIO()
    np.savez(
        stream,
        about=np.frombuffer(files.json_bytes(about), dtype=np.uint8),
        likelihoods=likelihoods,
        history=history,
    )
    files.write_whole(path, stream.getvalue())


def read(path: str | os.PathLike[str]) -> LedgerFile:
    """Read a ledger, and refuse what is none, or cut short, or changed.

    Raises:
        FileFormatError: see there.
    """
    files.ending_of(path, (".npz",))
    content = files.read_bytes(path)
    try:
        files.check_expansion(path, content)
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            about = json.loads(arrays["about"].tobytes())
            likelihoods, history = arrays["likelihoods"], arrays["history"]
        if about["format"] != FORMAT or about["version"] != VERSION:
            raise ValueError(f"its format is {about['format']!r}, version {about['version']!r}")
        digest = about.pop("digest")
    except FileFormatError:
        raise
    except Exception as cause:  # what zip, npy and json readers raise on foreign bytes has no bounds
        raise FileFormatError(f"{path}: is not a whole ledger of version {VERSION}: {cause}") from None
    if digest != _digest(about, likelihoods, history):
        raise FileFormatError(f"{path}: was changed after it was written: its digest is another")
    try:
        return LedgerFile(_prior(about), about["total"], about["releases"], likelihoods, history)
    except (InputError, KeyError, TypeError, ValueError) as cause:
        raise FileFormatError(f"{path}: is not a ledger: {cause}") from None


def _digest(about: dict[str, Any], likelihoods: FloatArray, history: IntArray) -> str:
    text = json.dumps(about, sort_keys=True).encode()
    whole = hashlib.sha256(text)
    for array in (likelihoods, history):
        whole.update(f"{array.shape} {array.dtype.str}".encode())
        whole.update(np.ascontiguousarray(array).tobytes())
    return whole.hexdigest()


def _prior(about: dict[str, Any]) -> Prior:
    labels = None if about["unnamed"] else labels_from_json(about["labels"])
    if about["counts"] is None:
        return Prior(about["probabilities"], labels, about["samples"])
    if about["samples"] is None:
        return Prior.uniform(len(about["counts"]), labels)
    return Prior.from_counts(about["counts"], labels)
