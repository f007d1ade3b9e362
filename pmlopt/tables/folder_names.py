"""Hive-style partition values in folder names, such as `region=a%2Fb`."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

from pmlopt.errors import FileFormatError

MISSING_NAME = "__HIVE_DEFAULT_PARTITION__"
"""The name of a folder for a missing value."""


def values_in_path(file: Path, folder: Path) -> dict[str, str | None]:
    """Parse the partition columns and values of a file's path.

    What a path cannot hold is percent-encoded there. Values are text: an engine may read `2020` as a number.

    Raises:
        FileFormatError: a name is percent-encoded text that is not UTF-8.

    Examples:
        >>> values_in_path(Path("people/region=a%2Fb/year=2020/part-0.parquet"), Path("people"))
        {'region': 'a/b', 'year': '2020'}
        >>> values_in_path(Path("people/region=__HIVE_DEFAULT_PARTITION__/part-0.parquet"), Path("people"))
        {'region': None}
    """
    parts = file.relative_to(folder).parent.parts
    pairs = (part.split("=", 1) for part in parts if "=" in part)
    return {
        _decode_value(name, file): None if value == MISSING_NAME else _decode_value(value, file)
        for name, value in pairs
    }


def _decode_value(text: str, file: Path) -> str:
    """Decode a percent-encoded partition value."""
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise FileFormatError(
            f"{file}: the name {text!r} of its folder is percent-encoded text that is not UTF-8: rename it"
        ) from None
