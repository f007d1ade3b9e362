"""That calls refuse what they cannot mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def refused(
    error: type[Exception], call: Callable[..., Any], words: str, *every: tuple[Any, ...]
) -> None:
    """Hold that a call refuses each of the arguments with an error in these words."""
    for arguments in every:
        with pytest.raises(error, match=words):
            call(*arguments)
