"""Loading of any saved file: a mechanism, a result or a ledger."""

from __future__ import annotations

import os
from typing import Any

from pmlopt.errors import FileFormatError
from pmlopt.releases.accounts.ledger import Ledger
from pmlopt.verification.verify_saved import load_saved


def load(path: str | os.PathLike[str]) -> Any:
    """Load a saved `Mechanism`, `Result` or `Ledger`.

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
        return load_saved(path)
    except FileFormatError as cause:
        try:
            return Ledger.load(path)
        except FileFormatError:
            raise cause from None
