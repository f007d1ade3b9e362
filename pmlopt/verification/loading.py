"""Read whatever was saved."""

from __future__ import annotations

import os
from typing import Any

from pmlopt.errors import FileFormatError
from pmlopt.programs.certificate import Restart
from pmlopt.programs.result import Result
from pmlopt.releases.ledger import Ledger
from pmlopt.verification.verifying import read_any, told_of


def load(path: str | os.PathLike[str]) -> Any:
    """The `Mechanism`, the `Result` or the `Ledger` that a file holds.

    A result comes back with its certificate, as the file has it: `verify_file` decides whether what it claims
    is true, and `certificate.verify()` does.

    Args:
        path: what `save` of one of them wrote.

    Raises:
        FileFormatError: it is not there, or none of these.

    Examples:
        >>> import pathlib, tempfile
        >>> from pmlopt import PML, design, solve
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = pathlib.Path(folder.name) / "mechanism.json"
        >>> solve(design([0.5, 0.5], PML(0.2), "hamming")).save(path)
        >>> round(load(path).value, 6)  # 1 - e^0.2 / 2
        0.389299
        >>> folder.cleanup()
    """
    try:
        mechanism, metadata = read_any(path)
    except FileFormatError as cause:
        try:
            return Ledger.load(path)
        except FileFormatError:
            raise cause from None
    if metadata.get("certificate") is None:
        return mechanism
    told = told_of(mechanism, metadata, path)
    return Result(
        told.status, told.certificate, told.solver, told.reason, told.attempts, told.iterations,
        told.warm_started, told.timings, told.closed_form, Restart(told.solver, {}),
    )  # fmt: skip
