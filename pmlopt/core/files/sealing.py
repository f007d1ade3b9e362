"""Protection of released folders, whose digests forbid later writes."""

from __future__ import annotations

import os
from pathlib import Path

from pmlopt.errors import FileFormatError

SEALED_BY = "release.json"
"""The description of a release, whose digests seal the folder that it is in."""


def check_not_sealed(path: str | os.PathLike[str]) -> None:
    """Raise an error for a target inside a release folder.

    Raises:
        FileFormatError: it is; the message names the folder.
    """
    for folder in Path(path).resolve().parents:
        if _is_sealed(folder):
            raise FileFormatError(
                f"{path}: is in the folder of a release, {folder}, whose digests seal it: write to another "
                "folder, with -o"
            )


def _is_sealed(folder: Path) -> bool:
    """Return whether a folder is a release."""
    description = folder / SEALED_BY
    try:
        if not description.is_file():
            return False
        with description.open("rb") as stream:
            return b'"pmlopt release ' in stream.read(4096)
    except OSError:
        return False
