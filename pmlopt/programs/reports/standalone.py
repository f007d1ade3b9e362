"""Which part of a saved result the stand-alone script `verifier.py` proves, for the advice of reports."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from pmlopt.programs.certificate import Certificate

VERIFY, STANDALONE = "pmlopt verify", "python -m pmlopt.verification.verifier"


def find_proved_part(certificate: Certificate, name: str) -> str:
    """Return what `verifier.py` proves of a saved result: "all", "leakage", or "" for nothing.

    Args:
        certificate: of the result.
        name: of its file.

    Examples:
        >>> from pmlopt import PML, Secret, design, solve
        >>> find_proved_part(solve(design([0.6, 0.4], PML(0.2), "hamming")).certificate, "a.json")
        'all'
        >>> secret = Secret([[0.3, 0.1], [0.2, 0.4]])
        >>> about = PML(0.1, about=secret)
        >>> find_proved_part(solve(design(secret.prior, about, "hamming")).certificate, "a.json")
        ''
    """
    held: Any = certificate
    privacy = getattr(held, "privacy", None)
    is_read = PurePath(name).suffix.lower() == ".json" and held.listed_prior is not None
    if privacy is None or not is_read or not _is_known_requirement(privacy):
        return ""
    over = getattr(privacy, "over", None)
    if held.kind == "linear":
        is_other = held.added_rows or not math.isfinite(held.bound)
        return "" if is_other else "all"
    if held.kind == "least-leakage":
        is_other = over is not None or held.expected is not None or held.laws is not None
        return "" if is_other else "all"
    return "all" if held.kind == "compliance" else "leakage"


def _is_known_requirement(privacy: Any) -> bool:
    """Return whether `verifier.py` decides a requirement."""
    if privacy.name not in ("pml", "ldp", "lip", "maximal-leakage"):
        return False
    if getattr(privacy, "about", None) is not None or isinstance(
        getattr(privacy, "epsilon", 0.0), Sequence
    ):
        return False
    over = getattr(privacy, "over", None)
    if over is None or over.kind in ("minimum-mass", "all-priors"):
        return True
    return over.kind == "l1-ball" and (over.delta is None or over.center.counts is not None)


def list_check_commands(certificate: Certificate, name: str) -> tuple[list[str], str]:
    """Return the commands that check a saved result, and the sentence on the second of them.

    Args:
        certificate: of the result.
        name: of its file.
    """
    part = find_proved_part(certificate, name)
    if not part:
        return [f"{VERIFY} {name}"], (
            "It states what it does not check. The stand-alone script verifier.py proves nothing of results "
            "like this one; where the requirement is linear, pmlopt prove writes a proof for checkers of "
            "others."
        )
    rest = "" if part == "all" else (
        " It proves the leakage, and not the value and its bound, which the first checks."
    )  # fmt: skip
    return [f"{VERIFY} {name}", f"{STANDALONE} {name}"], (
        "The second is a script that needs only Python, and runs where no pmlopt is installed once it is "
        f"copied there. It takes every number as the rational that it is.{rest} Both state what they do not "
        "check."
    )
